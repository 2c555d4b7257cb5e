"""Snapshots of many ranks, in torch.distributed.checkpoint: any number reads any.

A folder holds the parts as their ranks have written them, and FACTS, which is written
last. The folder has its name only when all of it is on the disk. One file of
safetensors, as a single process leaves it, is read the same way.
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp
from safetensors import safe_open
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.tensor import DTensor

from k3.errors import CheckpointError

FACTS = "facts.json"


def save(
    tensors: Mapping[str, Tensor], folder: Path, facts: Mapping[str, Any], rank: int = 0
) -> None:
    """Write tensors and facts of all ranks, on all of them at once; replaces nothing.

    A DTensor's parts are written by their holders, a plain tensor by one of the ranks
    that give its name.
    """
    writing = folder.with_name(f".{folder.name}.writing")
    if rank == 0:
        shutil.rmtree(writing, ignore_errors=True)
    _wait()
    writer = torch_dcp.FileSystemWriter(writing, sync_files=True)
    try:
        with _quiet():
            torch_dcp.save(dict(tensors), storage_writer=writer, no_dist=_alone())
    except (OSError, CheckpointException) as fault:
        raise CheckpointError(
            f"snapshots must be written to {folder.parent}: got {_why(fault):.200}; "
            "make room or permit it, then resume from the one before"
        ) from fault
    if rank == 0:
        (writing / FACTS).write_text(json.dumps(facts))
        for path in (writing / FACTS, writing):
            _to_disk(path)
        os.replace(writing, folder)
        _to_disk(folder.parent)
    _wait()


def facts(path: Path) -> dict[str, Any]:
    """Return what was saved beside the tensors. Raises: CheckpointError."""
    try:
        if path.is_dir():
            found = json.loads((path / FACTS).read_text())
        else:
            with safe_open(path, framework="pt") as file:
                found = json.loads((file.metadata() or {})["facts"])
    except (OSError, KeyError, ValueError, RecursionError) as fault:
        raise _damaged(path, repr(fault)) from fault
    if not isinstance(found, dict):
        raise _damaged(path, f"its facts are {found!r:.80}")
    return found


def load(
    path: Path, like: Mapping[str, Tensor], *, together: bool = True
) -> dict[str, Tensor]:
    """Return this rank's part of every tensor of `like` that the snapshot holds.

    `like` gives names, whole shapes and placements; of a DTensor the local part is
    returned, of others the whole. Called on all ranks at once, or not `together`.
    Raises: CheckpointError where a shape differs or a file is damaged.
    """
    try:
        if path.is_dir():
            return _from_folder(path, like, together and not _alone())
        return _from_file(path, like)
    except CheckpointError:
        raise
    # The second is no Exception, and is raised on all ranks at once.
    except (Exception, CheckpointException) as fault:
        raise _damaged(path, _why(fault)) from fault


def _from_folder(
    path: Path, like: Mapping[str, Tensor], together: bool
) -> dict[str, Tensor]:
    reader = torch_dcp.FileSystemReader(path)
    held = reader.read_metadata().state_dict_metadata
    state = {}
    for name, x in like.items():
        if name in held:
            _check(path, name, getattr(held[name], "size", None), x)
            state[name] = _room(x)
    with _quiet():
        torch_dcp.load(state, storage_reader=reader, no_dist=not together)
    return {n: x.to_local() if isinstance(x, DTensor) else x for n, x in state.items()}


def whole(path: Path) -> dict[str, Tensor]:
    """Return all tensors of a folder, on this rank alone. Raises: CheckpointError."""
    try:
        held = torch_dcp.FileSystemReader(path).read_metadata().state_dict_metadata
        like = {
            name: torch.empty(x.size, dtype=x.properties.dtype, device="meta")
            for name, x in held.items()
            if isinstance(x, TensorStorageMetadata)
        }
    except Exception as fault:
        raise _damaged(path, repr(fault)) from fault
    return load(path, like, together=False)


def _from_file(path: Path, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read only the rows that are held here."""
    found = {}
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
        for name, x in like.items():
            if name not in names:
                continue
            part = file.get_slice(name)
            _check(path, name, part.get_shape(), x)
            found[name] = file.get_tensor(name) if x.dim() == 0 else part[_rows(x)]
    return found


def _rows(x: Tensor) -> slice:
    """Which rows of the whole tensor are here; parts are split along the first dim."""
    if not isinstance(x, DTensor):
        return slice(0, len(x))
    first, count = 0, len(x)
    for i, size in enumerate(x.device_mesh.shape):
        each = -(-count // size)
        at = min(count, each * x.device_mesh.get_local_rank(i))
        first, count = first + at, min(each, count - at)
    return slice(first, first + count)


def _check(path: Path, name: str, got: Any, x: Tensor) -> None:
    shape = None if got is None else tuple(got)
    if shape != tuple(x.shape):
        raise CheckpointError(
            f"{name} must have shape {tuple(x.shape)}: got {shape} in {path}; "
            "resume the run that wrote it"
        )


def _damaged(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"resuming needs a whole snapshot: got {path} ({why:.200}); restore it, or "
        "train again in another directory"
    )


def _room(x: Tensor) -> Tensor:
    """Return zeros like x, in memory also where x is only a shape."""
    return torch.zeros_like(x, device="cpu" if x.is_meta else None)


def _alone() -> bool:
    return not dist.is_initialized()


@contextmanager
def _quiet() -> Iterator[None]:
    """It warns of a single process also where it was told so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is", UserWarning)
        yield


def _why(fault: BaseException) -> str:
    """The first rank's reason, without its traceback."""
    if isinstance(fault, CheckpointException):
        fault, _ = next(iter(fault.failures.values()))
    return repr(fault)


def _wait() -> None:
    if not _alone():
        dist.barrier()


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
