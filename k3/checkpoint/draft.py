"""A draft's folder: config.json and model.safetensors, checked whole on loading."""

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from k3.checkpoint import lock
from k3.config.draft import DraftConfig
from k3.errors import CheckpointError
from k3.model.draft import Draft

FILE_NAME = "model.safetensors"


def save(draft: Draft, directory: str | os.PathLike[str]) -> None:
    """Write the folder; each file under a temporary name first.

    The table `d2t` is written where the draft has fewer tokens than its target.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: x.detach().contiguous() for name, x in _tensors(draft).items()}
    temporary = lock.temporary(folder, FILE_NAME)
    save_file(tensors, temporary, metadata={"format": "pt"})
    temporary.replace(folder / FILE_NAME)
    temporary = lock.temporary(folder, "config.json")
    temporary.write_text(json.dumps(draft.config.to_dict(), indent=2) + "\n")
    temporary.replace(folder / "config.json")


def load(
    directory: str | os.PathLike[str],
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> Draft:
    """Return the draft of a folder, in `dtype` or in that of its files.

    Raises: ConfigError for a config that it could not obey; CheckpointError naming
    every tensor that is missing, unexpected or of another shape, and for a table that
    is missing or leaves the target's tokens.
    """
    path = Path(directory) / FILE_NAME
    config = DraftConfig.load(directory)
    try:
        tensors = load_file(path, device=str(device))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"a draft's folder holds {FILE_NAME}: got {path} ({error!r:.200}); copy "
            "the whole folder"
        ) from error
    with torch.inference_mode(False):
        dtype = dtype or tensors.get("fc.weight", torch.empty(0)).dtype
        draft = Draft(config, dtype).to(device)
    _check(_tensors(draft), tensors, path)
    with torch.no_grad():
        for name, value in _tensors(draft).items():
            value.copy_(tensors[name])
    draft.check_table()
    return draft.requires_grad_(False).eval()


def _tensors(draft: Draft) -> dict[str, Tensor]:
    """What the file holds, by name."""
    found = draft.state_dict(keep_vars=True)
    if draft.config.vocab_size == draft.config.text.vocab_size:
        del found["d2t"]
    return found


def _check(wanted: dict[str, Tensor], found: dict[str, Tensor], path: Path) -> None:
    wrong = [f"{name} is missing" for name in wanted if name not in found]
    wrong += [f"{name} is not a draft's" for name in found if name not in wanted]
    wrong += [
        f"{name} is {list(found[name].shape)} for {list(value.shape)}"
        for name, value in wanted.items()
        if name in found and found[name].shape != value.shape
    ]
    if wrong:
        raise CheckpointError(
            f"{path} must hold the tensors of its config: got " + "; ".join(wrong)
        )
