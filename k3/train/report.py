"""What a run says: each stage, a line every few steps, and metrics.jsonl."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from k3.train.loop import Report
from k3.train.trainer import Record

FILE_NAME = "metrics.jsonl"


def line(record: Record) -> str:
    """One record as a line of text."""
    done, steps = int(record["step"]), int(record["steps"])
    if "skipped" in record:
        return f"step {done}/{steps} skipped ({record['skipped']})"
    left = int(record["seconds"] / done * (steps - done))
    return (
        f"step {done}/{steps} loss {record['loss']:.2f} (ema {record['ema']:.2f}) "
        f"tok/s {record['tokens_per_second'] / 1e3:.1f}k "
        f"lr {record['learning_rate']:.1e} gnorm {record['gradient_norm']:.2f} "
        f"expert-max/mean {record['expert_max_over_mean']:.2f} "
        f"eta {left // 60}:{left % 60:02d}"
    )


def keep_until(path: Path, step: int) -> None:
    """Drop records past `step`, which a resumed run writes again, and torn ones."""
    if path.is_file():
        lines = path.read_bytes().splitlines()
        kept = [text for text in lines if _step(text) <= step]
        aside = path.with_name(f".{path.name}.writing")
        aside.write_bytes(b"".join(text + b"\n" for text in kept))
        aside.replace(path)


def _step(text: bytes) -> float:
    """The step of a line; infinity where a kill or a full disk has cut it."""
    try:
        return float(json.loads(text)["step"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return math.inf


@contextmanager
def reporter(
    directory: Path,
    *,
    quiet: bool,
    also: Sequence[Report] = (),
    say: Callable[[Record], str] = line,
) -> Iterator[Report]:
    """Append every record to metrics.jsonl and show it: a bar on a terminal."""
    with (directory / FILE_NAME).open("a") as metrics, _shown(quiet, say) as show:

        def report(record: Record) -> None:
            metrics.write(json.dumps(record) + "\n")
            metrics.flush()
            for told in (show, *also):
                told(record)

        yield report


@contextmanager
def stage(what: str, *, quiet: bool) -> Iterator[None]:
    """Say what begins, and in the same line how long it took."""
    if quiet:
        yield
        return
    began, end = time.monotonic(), "stopped"
    print(f"{what} ...", end=" ", file=sys.stderr, flush=True)
    try:
        yield
        end = f"{time.monotonic() - began:.1f} s"
    finally:
        print(end, file=sys.stderr, flush=True)


@contextmanager
def _shown(quiet: bool, say: Callable[[Record], str]) -> Iterator[Report]:
    if quiet:
        yield lambda record: None
    elif sys.stderr.isatty():
        yield from _bar(say)
    else:
        yield lambda record: print(say(record), file=sys.stderr, flush=True)


def _bar(say: Callable[[Record], str]) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting")

        def show(record: Record) -> None:
            progress.update(
                task,
                total=record["steps"],
                completed=record["step"],
                description=say(record),
            )

        yield show
