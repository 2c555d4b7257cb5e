"""Token shards: ids of many documents in one file, read through a memory map.

A shard is a safetensors file: `ends` [D] uint64, where each document ends, `tokens`
[N] uint32, and `learned` [N] uint8 where not all of a document is. Its header is JSON
and is checked against the size of the file before anything is read.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from k3.data.examples import Example
from k3.errors import CheckpointError

MAX_HEADER_BYTES = 2**20
DTYPES: dict[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
}
LAYOUT = {"ends": "U64", "tokens": "U32", "learned": "U8"}


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The arrays of one file; `learned` is None where all but first tokens are."""

    ends: NDArray[np.uint64]
    tokens: NDArray[np.uint32]
    learned: NDArray[np.uint8] | None


def write(path: Path, examples: Sequence[Example]) -> None:
    """Write a shard; the file is complete, and on the disk, or absent."""
    ends = np.cumsum([len(example) for example in examples], dtype=np.uint64)
    ids = [example.ids.numpy() for example in examples]
    learned = [example.learned.numpy() for example in examples]
    arrays: dict[str, NDArray[Any]] = {
        "ends": ends,
        "tokens": np.concatenate(ids).astype(np.uint32),
    }
    if not all(flags[1:].all() for flags in learned):
        arrays["learned"] = np.concatenate(learned).astype(np.uint8)
    replace(path, save(arrays, {"format": "k3 tokens 1"}))


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, after it is on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read(path: Path) -> Shard:
    """The arrays of a shard, mapped and not read.

    Raises: CheckpointError for a file that is absent, cut short or no shard.
    """
    try:
        header, start, size = _header(path)
        arrays = {
            k: _array(path, header, k, start, size) for k in LAYOUT if k in header
        }
        shard = Shard(arrays["ends"], arrays["tokens"], arrays.get("learned"))
        _check(shard)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
        told = fault.strerror if isinstance(fault, OSError) else fault
        raise CheckpointError(
            f"a shard is a whole file of tokens: {path} is not ({told}); build the "
            "data again"
        ) from None
    return shard


def _header(path: Path) -> tuple[dict[str, Any], int, int]:
    """The JSON header, where the data begins, and the size of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
            raise ValueError(f"its header would have {length} bytes of {size}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    return header, 8 + length, size


def _array(
    path: Path, header: dict[str, Any], name: str, start: int, size: int
) -> NDArray[Any]:
    entry = header[name]
    (count,), (begin, end) = entry["shape"], entry["data_offsets"]
    dtype = DTYPES[LAYOUT[name]]
    if entry["dtype"] != LAYOUT[name] or type(count) is not int or count < 1:
        raise ValueError(f"{name} is {entry['dtype']} {entry['shape']}")
    if end - begin != count * dtype.itemsize or not 0 <= begin <= end <= size - start:
        raise ValueError(f"{name} lies at {begin} to {end} of {size - start} bytes")
    return np.memmap(path, dtype, mode="r", offset=start + begin, shape=count)


def _check(shard: Shard) -> None:
    ends, count = shard.ends, len(shard.tokens)
    rises = bool((ends[1:] > ends[:-1]).all()) and ends[0] > 0
    if not rises or ends[-1] != count:
        raise ValueError(f"its documents do not end one after another at {count}")
    if shard.learned is not None and len(shard.learned) != count:
        raise ValueError("learned is not one flag for each token")
