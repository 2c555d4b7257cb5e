"""A draft's folder: config.json and model.safetensors, checked whole on loading.

A fused draft's tensors have the names of the public drafts for K3 (Source: NVIDIA NeMo
Automodel, components/speculative/eagle/draft_kimi_k3.py).
"""

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
MASK = "t2d"
"""Which of the target's tokens a fused draft can name, beside its table."""
OUTSIDE = {
    "embed_tokens.weight": "model.embed_tokens.weight",
    "fc.weight": "model.fc.weight",
    "shared_head.norm.weight": "model.norm.weight",
    "shared_head.head.weight": "lm_head.weight",
    "d2t": "d2t",
}
"""Names of a fused draft's tensors that are not its layer's."""


def save(draft: Draft, directory: str | os.PathLike[str]) -> None:
    """Write the folder; each file under a temporary name first.

    The table `d2t` is written where the draft has fewer tokens than its target.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: x.detach().contiguous() for name, x in _tensors(draft).items()}
    if draft.fused and "d2t" in tensors:
        tensors[MASK] = _mask(draft)
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
        dtype = dtype or tensors.get(_named("fc.weight", config), torch.empty(0)).dtype
        draft = Draft(config, dtype).to(device)
    mask = tensors.pop(MASK, None) if draft.fused else None
    _check(_tensors(draft), tensors, path)
    with torch.no_grad():
        for name, value in _tensors(draft).items():
            value.copy_(tensors[name])
    draft.check_table()
    _check_mask(draft, mask)
    return draft.requires_grad_(False).eval()


def _tensors(draft: Draft) -> dict[str, Tensor]:
    """What the file holds, by name."""
    found = draft.state_dict(keep_vars=True)
    if draft.config.vocab_size == draft.config.text.vocab_size:
        del found["d2t"]
    return {_named(name, draft.config): x for name, x in found.items()}


def _named(name: str, config: DraftConfig) -> str:
    """The name of a tensor in the file."""
    if config.layout != "fused":
        return name
    return OUTSIDE.get(name, f"model.layers.0.{name}")


def _mask(draft: Draft) -> Tensor:
    known = torch.zeros(draft.config.text.vocab_size, dtype=torch.bool)
    known[draft.target_ids().cpu()] = True
    return known


def _check_mask(draft: Draft, told: Tensor | None) -> None:
    """Refuse a mask that does not say what the table says."""
    known = _mask(draft)
    if told is not None and not torch.equal(told.cpu(), known):
        raise CheckpointError(
            f"{MASK} flags the {int(known.sum())} of {len(known)} tokens that d2t "
            f"names: got {told.dtype} {list(told.shape)}, {int(told.sum())} of them "
            "set; copy both from one draft"
        )


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
