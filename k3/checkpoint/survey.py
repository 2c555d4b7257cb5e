"""A checkpoint directory against its config: every tensor there, nothing else.

Works from headers alone; with `values` it also reads the few tensors whose values
can be wrong by themselves: MXFP4 scales and what is stored in fp32.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from k3.checkpoint import header, names
from k3.checkpoint.header import TensorEntry
from k3.config import K3Config

EXPERT = re.compile(r"(.+\.experts)\.(\d+)\.(w[123])\.weight(_packed|_scale)?")
GROUP = 32


@dataclass(frozen=True, slots=True)
class Stored:
    """Where one tensor is: its file, and its entry in the header."""

    file: Path
    entry: TensorEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """A checkpoint: its config, how its experts are stored, and its tensors."""

    folder: Path
    config: K3Config
    experts: str
    tensors: dict[str, Stored]

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(stored.entry.nbytes for stored in self.tensors.values())


def survey(folder: Path, config: K3Config) -> Survey:
    """Return the checkpoint, or raise one CheckpointError with all its problems."""
    found, wrong = examine(folder, config, values=True)
    header.refuse(f"{folder} is not the checkpoint its config.json describes", wrong)
    return found


def examine(
    folder: Path, config: K3Config, *, values: bool = False
) -> tuple[Survey, list[str]]:
    """Return the checkpoint and everything that is wrong with it."""
    files, wrong = header.listing(folder)
    there = [name for name in files if (folder / name).is_file()]
    headers, damaged = header.read_all(folder, there)
    wrong += [line for line in damaged if line not in wrong]
    # Without an index nobody knows what a lost shard held.
    known = not wrong or (folder / header.INDEX).exists()
    wrong += _against_index(files, headers)
    tensors: dict[str, Stored] = {}
    for shard, entries in headers.items():
        for name, entry in entries.items():
            if name in tensors:
                wrong.append(f"{name} is in {tensors[name].file.name} and in {shard}")
            tensors[name] = Stored(folder / shard, entry)
    listed = {name for shard in files.values() for name in shard}
    # Of files that cannot be read the index still tells the form.
    experts = _storage(tensors.keys() | listed)
    found = Survey(folder=folder, config=config, experts=experts, tensors=tensors)
    wanted = table(config, found.experts)
    wrong += _missing(found, wanted, listed) if known else []
    good: list[str] = []
    wrong += _against_table(found, wanted, good)
    if values:
        wrong += _values(found, good)
    return found, wrong


def table(config: K3Config, experts: str) -> names.Table:
    """Return the names of a checkpoint whose experts are "packed" or "dense".

    Follows the files alone: `quantization_config` may be there or not.
    """
    dense = names.expected(config, "dense")
    if experts == "dense":
        return dense
    packed: names.Table = {}
    for name, (shape, dtype) in dense.items():
        if EXPERT.fullmatch(name):
            rows, columns = shape
            packed[f"{name}_packed"] = (rows, columns // 2), "U8"
            packed[f"{name}_scale"] = (rows, columns // GROUP), "U8"
        else:
            packed[name] = shape, dtype
    return packed


def _storage(tensors: set[str]) -> str:
    """Experts are packed where a `.weight_packed` is, whatever `ignore` says."""
    packed = any(name.endswith(".weight_packed") for name in tensors)
    return "packed" if packed else "dense"


def _against_index(
    files: dict[str, list[str]], headers: dict[str, dict[str, TensorEntry]]
) -> Iterator[str]:
    for shard, entries in headers.items():
        listed = set(files[shard])
        for name in files[shard]:
            if name not in entries:
                yield f"{name} is in the index but not in {shard}"
        for name in entries:
            if name not in listed:
                yield f"{name} is in {shard} but not in the index"


def _missing(found: Survey, wanted: names.Table, listed: set[str]) -> Iterator[str]:
    """Yield what no file and no index names; the rest was named with its shard."""
    for name, (shape, dtype) in wanted.items():
        if name not in found.tensors and name not in listed:
            yield f"{name} is missing: expected {dtype} {shape}"


def _against_table(
    found: Survey, wanted: names.Table, good: list[str]
) -> Iterator[str]:
    """Yield what is unexpected or of another shape or dtype; fill `good`."""
    for name, stored in found.tensors.items():
        if name not in wanted:
            yield f"{name} is unexpected: the config has no such tensor"
            continue
        (shape, dtype), entry = wanted[name], stored.entry
        if not names.accepts(found.config, name, entry.shape, shape):
            yield _shape_line(found.config, name, entry.shape, shape)
        elif entry.dtype != dtype:
            yield f"{name} has dtype {entry.dtype}: expected {dtype}"
        else:
            good.append(name)


def _shape_line(
    config: K3Config, name: str, came: tuple[int, ...], shape: tuple[int, ...]
) -> str:
    if name.endswith(".A_log"):
        lengths = " or ".join(map(str, names.a_log_lengths(config)))
        return f"{name} has shape {came}: expected a length of {lengths}"
    if name.endswith(".weight_scale"):
        return f"{name} has shape {came}: expected {shape}, one byte for {GROUP} values"
    return f"{name} has shape {came}: expected {shape}"


def _values(found: Survey, good: list[str]) -> Iterator[str]:
    """Yield NaN scales, fp32 that is not finite, A_log whose padding is not zero."""
    entries = {n: found.tensors[n].entry for n in good}
    wanted = [
        n for n, e in entries.items() if e.dtype == "F32" or n.endswith(".weight_scale")
    ]
    stream: BinaryIO | None = None
    try:
        for name in sorted(wanted, key=lambda n: _place(found.tensors[n])):
            stored = found.tensors[name]
            if stream is None or stream.name != str(stored.file):
                if stream:
                    stream.close()
                stream = stored.file.open("rb")
            stream.seek(stored.entry.begin)
            data = stream.read(stored.entry.nbytes)
            yield from _value_lines(found.config, name, stored.entry, data)
    finally:
        if stream:
            stream.close()


def _place(stored: Stored) -> tuple[str, int]:
    return str(stored.file), stored.entry.begin


def _value_lines(
    config: K3Config, name: str, entry: TensorEntry, data: bytes
) -> Iterator[str]:
    if entry.dtype == "F32":
        values: list[float] = list(memoryview(data).cast("f"))
        yield from _not_finite(name, values)
        heads = config.text.linear_attn_config.num_heads
        # -0.0 too: a save writes 0.0, and the file would not come back as it was.
        if name.endswith(".A_log") and any(data[4 * heads :]):
            at = next(i for i in range(heads, len(values)) if str(values[i]) != "0.0")
            yield f"{name} has {heads} heads and then zeros: got {values[at]} at {at}"
    elif b"\xff" in data:
        row, group = divmod(data.index(b"\xff"), entry.shape[-1])
        yield (
            f"{name} has scale byte 255, which is NaN, in {data.count(255)} groups, "
            f"first in row {row}, group {group}"
        )


def _not_finite(name: str, values: list[float]) -> Iterator[str]:
    """One NaN here routes every token, or decays every memory, to NaN."""
    if not all(map(math.isfinite, values)):
        at = next(i for i, value in enumerate(values) if not math.isfinite(value))
        yield f"{name} must be finite: got {values[at]} at {at}"
