"""Snapshots of a run: safetensors files, written aside and renamed, several kept."""

import json
import os
import re
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from k3.checkpoint import shards
from k3.errors import CheckpointError

PATTERN = "training-*.*"
WRITING = ".training.safetensors.writing"
_NAME = re.compile(r"training-(\d{8,})\.(safetensors|dcp)")


def path_of(directory: Path, step: int) -> Path:
    """The file of the snapshot after so many steps."""
    return directory / f"training-{step:08d}.safetensors"


def folder_of(directory: Path, step: int) -> Path:
    """The folder of a snapshot that many ranks have written, by k3.parallel.dcp."""
    return directory / f"training-{step:08d}.dcp"


def kept(directory: Path) -> list[Path]:
    """The snapshots of a run folder, those of the most steps first."""
    found = [(int(m[1]), p) for p in directory.glob(PATTERN) if (m := _named(p))]
    return [path for _, path in sorted(found, reverse=True)]


def write(
    directory: Path, tensors: Mapping[str, Tensor], facts: dict[str, Any], keep: int = 1
) -> None:
    """Add the snapshot of `facts["step"]`, and of all before it leave `keep` in all.

    A reader sees all of the file or none: the bytes, with their checksums, are on the
    disk before the name is, also after a power cut.
    """
    temporary, step = directory / WRITING, int(facts["step"])
    copies = {name: value.detach().contiguous() for name, value in tensors.items()}
    sums = {name: _checksum(value) for name, value in copies.items()}
    metadata = {"facts": json.dumps(facts), "crc32": json.dumps(sums)}
    # save_file would leave a file of a random name where it is killed.
    temporary.write_bytes(save(copies, metadata=metadata))
    shards.sync(temporary)
    os.replace(temporary, path_of(directory, step))
    shards.sync(directory)
    drop(directory, step, keep)


def drop(directory: Path, step: int, keep: int) -> None:
    """Leave the `keep` newest of the snapshots up to a step."""
    older = [path for path in kept(directory) if _step(path) <= step]
    for path in older[keep:]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def read(directory: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts of the newest snapshot that is whole.

    Raises: CheckpointError where there is none, or none that is whole.
    """
    paths = kept(directory)
    if not paths:
        raise CheckpointError(
            f"resuming needs {directory / PATTERN}: got no such file; start without "
            "resume"
        )
    faults = []
    for path in paths:
        try:
            return read_file(path)
        except CheckpointError as fault:
            faults.append(fault)
    raise faults[0]


def damaged(path: Path, why: str) -> CheckpointError:
    """The sentence for a snapshot that is not what `write` leaves."""
    return CheckpointError(
        f"resuming needs a whole snapshot: got {path} ({why:.200}); restore the file, "
        "or train again in another directory"
    )


def read_file(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts of one snapshot. Raises: CheckpointError."""
    if path.is_dir():
        # Many ranks need it, and one has no use for its second of imports.
        from k3.parallel import dcp

        return dcp.whole(path), dcp.facts(path)
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
            metadata = file.metadata() or {}
            facts = json.loads(metadata["facts"])
            sums = json.loads(metadata["crc32"])
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError) as fault:
        raise damaged(path, repr(fault)) from fault
    if not isinstance(facts, dict):
        raise damaged(path, f"its facts are {facts!r:.80}")
    if sums != {name: _checksum(value) for name, value in tensors.items()}:
        raise damaged(path, "its bytes have other checksums than it names")
    return tensors, facts


def _checksum(tensor: Tensor) -> int:
    """CRC-32 of the bytes."""
    return zlib.crc32(tensor.numpy().tobytes() if tensor.numel() else b"")


def _named(path: Path) -> "re.Match[str] | None":
    return _NAME.fullmatch(path.name)


def _step(path: Path) -> int:
    found = _named(path)
    assert found is not None, path
    return int(found[1])
