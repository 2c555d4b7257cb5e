"""Snapshots of a run: one safetensors file, written aside and renamed."""

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from k3.errors import CheckpointError

FILE_NAME = "training.safetensors"
WRITING = f".{FILE_NAME}.writing"


def write(directory: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Replace the snapshot of a run folder; a reader sees the old one or the new.

    The bytes are on the disk before the name is: also after a power cut.
    """
    temporary = directory / WRITING
    copies = {name: value.detach().contiguous() for name, value in tensors.items()}
    save_file(copies, temporary, metadata={"facts": json.dumps(facts)})
    _to_disk(temporary)
    os.replace(temporary, directory / FILE_NAME)
    _to_disk(directory)


def read(directory: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts of the snapshot in a run folder.

    Raises: CheckpointError where there is none, or none that is whole.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        raise CheckpointError(
            f"resuming needs {path}: got no such file; start without resume"
        )
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
            facts = json.loads((file.metadata() or {})["facts"])
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError) as fault:
        raise damaged(path, repr(fault)) from fault
    if not isinstance(facts, dict):
        raise damaged(path, f"its facts are {facts!r:.80}")
    return tensors, facts


def damaged(path: Path, why: str) -> CheckpointError:
    """The sentence for a snapshot that is not what `write` leaves."""
    return CheckpointError(
        f"resuming needs a whole snapshot: got {path} ({why:.200}); restore the file, "
        "or train again in another directory"
    )


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
