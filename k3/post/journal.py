"""What a run must not lose: a line for each finished sample and each update.

A line is on the disk before the run goes on. A snapshot and the lines after it are the
run: updates since the snapshot are made again, in their order and from the same
samples, and what no update has learned from is learned from next.
"""

import base64
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

from k3.checkpoint import shards
from k3.errors import CheckpointError
from k3.train.rollout import Trajectory

FILE_NAME = "trajectories.jsonl"
BLOCK_BYTES = 2**16

Line = dict[str, Any]


class Journal:
    """Lines appended to a file; what a kill has cut is dropped when it is opened."""

    def __init__(self, path: Path) -> None:
        _drop_torn(path)
        self._file = path.open("ab")
        shards.sync(path.parent)

    def append(self, *lines: Mapping[str, Any]) -> None:
        """Write lines; returns when they are on the disk. Raises: CheckpointError."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        try:
            self._file.write(text.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as fault:
            raise CheckpointError(
                f"samples must be written to {self._file.name}: got {fault}; make room "
                "or permit it, then resume"
            ) from fault

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> Iterator[Line]:
    """The whole lines of a journal, in their order.

    Raises: CheckpointError for one that is no line of a journal.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if not text.endswith(b"\n"):
                return
            try:
                line = json.loads(text)
                _ = line["kind"]
            except (ValueError, TypeError, KeyError, RecursionError) as fault:
                raise CheckpointError(
                    f"a journal has a JSON object with its kind in every line: got "
                    f"line {number} of {path} ({fault!r:.80}); restore the file"
                ) from fault
            yield line


def finished(trajectory: Trajectory) -> Line:
    """The line of a finished sample: who wrote which tokens, and its reward."""
    runs = [
        [bool(own), version, len(list(these))]
        for (own, version), these in itertools.groupby(
            zip(trajectory.written, trajectory.versions, strict=True)
        )
    ]
    own = zip(trajectory.logprobs, trajectory.written, strict=True)
    return {
        "kind": "finished",
        "key": trajectory.key,
        "group": trajectory.group,
        "reward": trajectory.reward,
        "lost": trajectory.lost,
        "iterations": trajectory.iterations,
        "tokens": trajectory.tokens,
        "runs": runs,
        "logprobs": [value for value, written in own if written],
        "routes": _routes(trajectory),
        "messages": getattr(trajectory.episode, "messages", []),
    }


def restore_(trajectory: Trajectory, line: Line) -> None:
    """Fill a sample that has not begun with what its line tells."""
    logprobs = iter(line["logprobs"])
    trajectory.tokens = list(line["tokens"])
    for own, version, count in line["runs"]:
        trajectory.written += [own] * count
        trajectory.versions += [version] * count
        trajectory.logprobs += [next(logprobs) if own else 0.0 for _ in range(count)]
    trajectory.iterations = line["iterations"]
    if line["routes"] is not None:
        shape, text = line["routes"]
        values = np.frombuffer(base64.b64decode(text), np.int16).reshape(shape)
        rows = enumerate(torch.from_numpy(values.copy()))
        trajectory.routes = {i: row for i, row in rows if int(row.flatten()[0]) >= 0}
    trajectory.reward, trajectory.lost = line["reward"], line["lost"]
    if hasattr(trajectory.episode, "messages"):
        trajectory.episode.messages = line["messages"]


def _routes(trajectory: Trajectory) -> tuple[list[int], str] | None:
    """Shape and bytes of the experts of its tokens."""
    found = trajectory.experts()
    if found is None:
        return None
    return list(found.shape), base64.b64encode(found.numpy().tobytes()).decode()


def learned(
    iteration: int, rewarded: Iterable[tuple[Sequence[Trajectory], Sequence[float]]]
) -> Line:
    """The line of an update: which groups the iteration of this number learns from.

    With the reward of each sample: a judge that is asked again may say something else.
    """
    found = [(group[0].group, list(rewards)) for group, rewards in rewarded]
    return {
        "kind": "learned",
        "iteration": iteration,
        "groups": [name for name, _ in found],
        "rewards": [rewards for _, rewards in found],
    }


def _drop_torn(path: Path) -> None:
    """Cut the file behind its last whole line."""
    if not path.is_file():
        return
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        while size:
            start = max(0, size - BLOCK_BYTES)
            file.seek(start)
            end = file.read(size - start).rfind(b"\n")
            size = start if end < 0 else start + end + 1
            if end >= 0:
                break
        file.truncate(size)
