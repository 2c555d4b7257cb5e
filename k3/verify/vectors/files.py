"""How vectors lie on disk: npz files that numpy reads, and a manifest with hashes."""

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import k3
from k3.errors import RequestError

MANIFEST = "manifest.json"
Array = NDArray[Any]


def new_folder(folder: Path) -> None:
    """Make the folder. Raises: RequestError if there is anything in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(
            f"vectors go to a new folder, nothing is written over: got {folder}; give "
            "another, or remove it"
        )
    folder.mkdir(parents=True, exist_ok=True)


def arrays(values: Mapping[str, Any], prefix: str = "") -> dict[str, Array]:
    """Tensors and numbers as arrays by name; bfloat16 as its 16 bits."""
    out: dict[str, Array] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out |= arrays(value, f"{prefix}{name}.")
        elif value is not None:
            out[prefix + name] = _array(value)
    return out


def _array(value: Any) -> Array:
    if not isinstance(value, Tensor):
        return np.asarray(value)
    value = value.detach().cpu().contiguous()
    if value.dtype is torch.bfloat16:
        return np.asarray(value.view(torch.int16).numpy().view(np.uint16))
    return np.asarray(value.numpy())


def save(folder: Path, file: str, values: Mapping[str, Array]) -> None:
    """Write one npz file; keys with dots are kept as they are."""
    with (folder / file).open("wb") as stream:
        names: Any = dict(values)
        np.savez(stream, **names)


def manifest(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Describe every npz file of a folder, write manifest.json, and return it."""
    files = {p.name: _described(p) for p in sorted(folder.glob("*.npz"))}
    versions = {
        "k3": k3.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    whole = {**about, "versions": versions, "files": files}
    text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return whole


def _described(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        shapes = {
            name: {"shape": list(file[name].shape), "dtype": str(file[name].dtype)}
            for name in file.files
        }
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size, "arrays": shapes}
