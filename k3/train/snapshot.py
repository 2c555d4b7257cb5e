"""Snapshots of a run: one safetensors file, written aside and renamed."""

import json
import os
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from k3.errors import CheckpointError

FILE_NAME = "training.safetensors"


def write(directory: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Replace the snapshot of a run folder; a reader sees the old one or the new."""
    temporary = directory / f".{FILE_NAME}.writing"
    copies = {name: value.detach().contiguous() for name, value in tensors.items()}
    save_file(copies, temporary, metadata={"facts": json.dumps(facts)})
    os.replace(temporary, directory / FILE_NAME)


def read(directory: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts of the snapshot in a run folder.

    Raises: CheckpointError where there is none.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        raise CheckpointError(
            f"resuming needs {path}: got no such file; start without resume"
        )
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()["facts"])
