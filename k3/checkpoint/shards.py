"""Write shards and their index: temporary names first, the index last of all.

At no moment does the directory hold a readable mixture: an index that names no tensor
stands there from the first rename to the last.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from k3.checkpoint import lock
from k3.checkpoint.header import INDEX, ITEM_BYTES
from k3.checkpoint.names import Table
from k3.config import K3Config
from k3.errors import RequestError

MAX_SHARD_BYTES = 5_000_000_000
Progress = Callable[[int, int], None]
_OLD = re.compile(
    r"model(-\d+-of-\d+)?\.safetensors|\.model.*\.saving|\.config\.json\.\d+"
)


@dataclass(frozen=True, slots=True)
class Shard:
    """One file to be: its name, and its tensors in the order they are written."""

    name: str
    tensors: Table

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors, without the header."""
        return sum(nbytes(*entry) for entry in self.tensors.values())


def nbytes(shape: tuple[int, ...], dtype: str) -> int:
    """Return the bytes of a tensor in a file."""
    return math.prod(shape) * ITEM_BYTES[dtype]


def split(table: Table, max_shard_bytes: int) -> list[Shard]:
    """Return shards of at most `max_shard_bytes`, in the order of the table.

    A larger tensor gets a shard of its own. In a file wide dtypes come first, so that
    every tensor is aligned, then names in order.
    """
    if max_shard_bytes < 1:
        raise RequestError(f"max_shard_bytes must be positive: got {max_shard_bytes}")
    groups: list[list[str]] = [[]]
    size = 0
    for name, entry in table.items():
        if groups[-1] and size + nbytes(*entry) > max_shard_bytes:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += nbytes(*entry)
    shards = []
    for number, group in enumerate(groups, 1):
        group.sort(key=lambda name: (-ITEM_BYTES[table[name][1]], name))
        file = f"model-{number:05d}-of-{len(groups):06d}.safetensors"
        shards.append(Shard(file, {name: table[name] for name in group}))
    return shards


def write(
    folder: Path,
    shards: list[Shard],
    value: Callable[[str], Tensor],
    config: K3Config,
    progress: Progress | None = None,
) -> None:
    """Write a whole checkpoint of `value(name)`; the old one stays until it is done.

    Raises: CheckpointError while another save writes this directory.
    """
    with lock.held(folder):
        write_held(folder, shards, value, config, progress)


def write_held(
    folder: Path,
    shards: list[Shard],
    value: Callable[[str], Tensor],
    config: K3Config,
    progress: Progress | None = None,
) -> None:
    """Do what `write` does; the caller holds the directory's lock."""
    total, done = sum(shard.nbytes for shard in shards), 0
    temporary = {s.name: lock.temporary(folder, s.name) for s in shards}
    try:
        for shard in shards:
            with temporary[shard.name].open("wb") as stream:
                for count in _stream(stream, shard, value):
                    done += count
                    if progress:
                        progress(done, total)
                stream.flush()
                os.fsync(stream.fileno())
        _publish(folder, temporary, _index(shards), config)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)


def _stream(stream: Any, shard: Shard, value: Callable[[str], Tensor]) -> Iterator[int]:
    """Write one shard tensor by tensor, yielding the bytes of each."""
    stream.write(_header(shard))
    for name, (shape, dtype) in shard.tensors.items():
        tensor = value(name).detach().cpu().contiguous()
        data = tensor.view(-1).view(torch.uint8).numpy().data
        # What a header promises and what is written may not differ.
        assert tuple(tensor.shape) == shape, (name, tensor.shape, shape)
        assert data.nbytes == nbytes(shape, dtype), (name, tensor.dtype, dtype)
        stream.write(data)
        yield data.nbytes


def _header(shard: Shard) -> bytes:
    """Return the length and JSON header, padded to 8 bytes with spaces."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (shape, dtype) in shard.tensors.items():
        end = at + nbytes(shape, dtype)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _index(shards: list[Shard]) -> dict[str, Any]:
    where = {name: shard.name for shard in shards for name in shard.tensors}
    total = sum(shard.nbytes for shard in shards)
    return {
        "metadata": {"total_size": total},
        "weight_map": dict(sorted(where.items())),
    }


def _publish(
    folder: Path, temporary: dict[str, Path], index: dict[str, Any], config: K3Config
) -> None:
    """Rename the shards into place behind an index that names nothing."""
    _replace_json(folder, {"metadata": {"saving": True}, "weight_map": {}})
    for name, path in temporary.items():
        path.replace(folder / name)
    # Nobody else is saving here, so what other savers left is nobody's.
    for path in folder.iterdir():
        if _OLD.fullmatch(path.name) and path.name not in temporary:
            path.unlink()
    config.save(folder)
    sync(folder)
    _replace_json(folder, index)
    sync(folder)


def _replace_json(folder: Path, values: dict[str, Any]) -> None:
    temporary = lock.temporary(folder, INDEX)
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(values, stream, indent=1, ensure_ascii=False)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(folder / INDEX)


def sync(path: Path) -> None:
    """Have a file, or the renames in a directory, on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
