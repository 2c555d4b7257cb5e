"""Safetensors files from their headers alone: names, shapes, dtypes, byte ranges.

A file is 8 bytes of header length, a JSON header, then the tensors without gaps.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k3.errors import CheckpointError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_HEADER_BYTES = 100_000_000
ITEM_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
}
_SHARD = re.compile(r"model-(\d+)-of-(\d+)\.safetensors")


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a file; begin and end count from the start of the file."""

    shape: tuple[int, ...]
    dtype: str
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor in the file."""
        return self.end - self.begin


def read(path: str | Path) -> dict[str, TensorEntry]:
    """Return name -> entry of a safetensors file, in the order of its header.

    Raises: CheckpointError for a file that is absent, cut off or garbled, or whose
    tensors overlap, leave gaps or do not fill it; every wrong tensor is listed.
    """
    file = Path(path)
    header, start, size = _open(file)
    wrong: list[str] = []
    entries = {}
    for name, item in header.items():
        if name == "__metadata__":
            continue
        try:
            entries[name] = _entry(item, start)
        except ValueError as error:
            wrong.append(f"{name}: {error}")
    wrong += _ranges(entries, start, size, complete=not wrong)
    refuse(f"{file} is not a whole safetensors file", wrong)
    return entries


def index(directory: str | Path) -> dict[str, list[str]]:
    """Return file name -> tensor names of a checkpoint directory.

    From model.safetensors.index.json, or else from model.safetensors, or from a
    complete set of model-I-of-N.safetensors.
    Raises: CheckpointError listing every file that is absent or no file.
    """
    files, wrong = listing(Path(directory))
    refuse(f"{directory} is not a whole checkpoint", wrong)
    return files


def listing(folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Return what `index` does, absent files too, and what is wrong."""
    if (folder / INDEX).exists():
        files = _from_index(folder / INDEX)
        return files, list(_absent(folder, files))
    files = {name: [] for name in _shards(folder)}
    wrong = list(_absent(folder, files))
    headers, damaged = read_all(folder, [n for n in files if (folder / n).is_file()])
    files.update({name: list(header) for name, header in headers.items()})
    return files, wrong + damaged


def read_all(
    folder: Path, names: Iterable[str]
) -> tuple[dict[str, dict[str, TensorEntry]], list[str]]:
    """Return the headers of the files that are whole, and what is wrong with others."""
    headers, wrong = {}, []
    for name in names:
        try:
            headers[name] = read(folder / name)
        except CheckpointError as error:
            wrong.append(str(error))
    return headers, wrong


def first(wrong: Sequence[str], rest: str) -> Iterator[str]:
    """Yield lines for a person: the first 20, and how many more; `rest` lists those."""
    yield from (f"  {line}" for line in wrong[:20])
    if len(wrong) > 20:
        yield f"  ... and {len(wrong) - 20} more: {rest}"


def refuse(rule: str, wrong: list[str]) -> None:
    """Raise one CheckpointError if anything is wrong; its `problems` are all of it."""
    if wrong:
        lines = "\n".join(first(wrong, "the error's `problems` lists all"))
        things = "problem" if len(wrong) == 1 else "problems"
        error = CheckpointError(f"{rule}: {len(wrong)} {things}\n{lines}")
        error.problems = tuple(wrong)
        raise error


def _open(file: Path) -> tuple[dict[str, Any], int, int]:
    """Return (header, first byte of data, file size)."""
    if file.is_dir():
        raise CheckpointError(
            f"{file} is a directory: a shard is a file; was the download interrupted?"
        )
    if not file.is_file():
        raise CheckpointError(f"there is no file {file}")
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > size - 8:
            raise CheckpointError(
                f"{file} is cut off: it has {size} bytes and its header alone should "
                f"take {8 + length if size >= 8 else 'at least 8'}; fetch it again"
            )
        if length > MAX_HEADER_BYTES:
            raise CheckpointError(
                f"{file} claims a header of {length} bytes, more than the "
                f"{MAX_HEADER_BYTES} allowed: is it a safetensors file?"
            )
        text = stream.read(length)
    return _parse(file, text), 8 + length, size


def _parse(file: Path, text: bytes) -> dict[str, Any]:
    """Return the JSON header; a name given twice is refused."""
    try:
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"the header of {file} is garbled: {error}; fetch the file again"
        ) from None
    if not isinstance(header, dict):
        raise CheckpointError(f"the header of {file} must be a JSON object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = [name for name in names if counts[name] > 1]
        raise ValueError(f"named twice: {', '.join(twice)}")
    return names


def _entry(item: Any, start: int) -> TensorEntry:
    """Return one entry, or raise ValueError with what is wrong about it."""
    if not isinstance(item, dict) or set(item) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(
            f"an entry has dtype, shape and data_offsets: got {item!r:.80}"
        )
    dtype, shape, offsets = item["dtype"], item["shape"], item["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise ValueError(f"unknown dtype {dtype!r}")
    if not _sizes(shape) or not _sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"shape {shape!r:.80} at {offsets!r:.80} are not sizes")
    nbytes = math.prod(shape) * ITEM_BYTES[dtype]
    if offsets[1] - offsets[0] != nbytes:
        raise ValueError(
            f"{dtype} {tuple(shape)} takes {nbytes} bytes: "
            f"the header gives it {offsets[1] - offsets[0]}"
        )
    return TensorEntry(tuple(shape), dtype, start + offsets[0], start + offsets[1])


def _sizes(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values
    )


def _ranges(
    entries: dict[str, TensorEntry], start: int, size: int, complete: bool
) -> Iterator[str]:
    """Yield tensors that overlap, leave a gap, or pass the end of the file."""
    at, before = start, "the header"
    for name, entry in sorted(entries.items(), key=lambda e: (e[1].begin, e[1].end)):
        if entry.begin < at:
            yield f"{name} overlaps {before} by {at - entry.begin} bytes"
        elif entry.begin > at and complete:
            yield f"{entry.begin - at} bytes before {name} belong to no tensor"
        if entry.end > size:
            yield f"{name} ends at byte {entry.end} of {size}: the file is cut off"
        if entry.end >= at:
            at, before = entry.end, name
    if complete and at < size:
        yield f"{size - at} bytes after the last tensor belong to no tensor"


def _from_index(file: Path) -> dict[str, list[str]]:
    """Return file name -> tensor names as the index gives them."""
    try:
        names = json.loads(file.read_bytes(), object_pairs_hook=_unique)["weight_map"]
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise CheckpointError(
            f"{file} is not an index with a weight_map: {error!r:.200}"
        ) from None
    if not isinstance(names, dict) or not names:
        raise CheckpointError(
            f"the weight_map of {file} names no tensor: "
            "is it of a save that was cut off?"
        )
    wrong = [
        f"{name}: {shard!r:.80} is not the name of a file in this directory"
        for name, shard in names.items()
        if not isinstance(shard, str) or Path(shard).name != shard or not shard
    ]
    refuse(f"{file} is not an index", wrong)
    files: dict[str, list[str]] = {}
    for name, shard in names.items():
        files.setdefault(shard, []).append(name)
    return dict(sorted(files.items()))


def _shards(folder: Path) -> list[str]:
    """Return the shard names of a directory that has no index."""
    if (folder / SINGLE).exists():
        return [SINGLE]
    found = sorted(p.name for p in folder.glob("model-*-of-*.safetensors"))
    parts = [match for name in found if (match := _SHARD.fullmatch(name))]
    if not parts:
        raise CheckpointError(
            f"{folder} holds no weights: expected {INDEX}, {SINGLE} or "
            "model-00001-of-N.safetensors"
        )
    totals = {part[2] for part in parts}
    if len(totals) > 1:
        raise CheckpointError(f"{folder} mixes shards of several sets: {found}")
    total = totals.pop()
    # As many digits as the first name has; the release writes 5 and 6.
    width = len(parts[0][1])
    numbers = range(1, int(total) + 1)
    return [f"model-{i:0{width}d}-of-{total}.safetensors" for i in numbers]


def _absent(folder: Path, files: dict[str, list[str]]) -> Iterator[str]:
    for name, tensors in files.items():
        holds = f": {len(tensors)} tensors, {tensors[0]} ..." if tensors else ""
        if (folder / name).is_dir():
            yield f"{name} is a directory, not a file{holds}"
        elif not (folder / name).is_file():
            yield f"{name} is absent{holds}"
