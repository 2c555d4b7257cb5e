"""Save a model in the released layout; a save that is cut off leaves no half of it."""

import os
import shutil
from pathlib import Path

import torch
from torch import Tensor

from k3.checkpoint import lock, places, recode, shards
from k3.checkpoint.header import INDEX
from k3.checkpoint.names import Table
from k3.checkpoint.survey import table
from k3.errors import CheckpointError
from k3.model import Model

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npz")


def save(
    model: Model,
    directory: str | os.PathLike[str],
    *,
    max_shard_bytes: int = shards.MAX_SHARD_BYTES,
    experts: str | None = None,
    progress: shards.Progress | None = None,
) -> None:
    """Write config.json, shards and index of a model, replacing what is there.

    Names, shapes and dtypes are the release's: the trunk is rounded to bfloat16 if it
    is wider, A_log padded with zeros to its stored length. `experts`: "packed" writes
    MXFP4, "dense" bfloat16, None what the model holds; config.json follows.
    Loading and saving again gives the same files, byte for byte.
    Raises: RequestError for an unknown option; CheckpointError while another save
    writes this directory.
    """
    recode.check(experts)
    held = places.expert_storage(model)
    wanted = experts or held
    entries = _table(model, wanted)
    config = recode.follow(model.config, entries, wanted)
    value = recode.Recode(lambda name: _value(model, name), entries, held, wanted)
    parts = shards.split(entries, max_shard_bytes)
    shards.write(Path(directory), parts, value, config, progress)


def copy_side_files(
    source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> list[str]:
    """Copy tokenizer and other files beside the weights; return their names.

    Everything in the directory itself but hidden files, weights, index and config.
    """
    here, there = Path(source), Path(target)
    if here.resolve() == there.resolve():
        raise CheckpointError(f"cannot copy side files of {here} onto themselves")
    copied = side_files(here)
    there.mkdir(parents=True, exist_ok=True)
    for name in copied:
        temporary = lock.temporary(there, name)
        shutil.copyfile(here / name, temporary)
        temporary.replace(there / name)
    return copied


def side_files(folder: Path) -> list[str]:
    """Return the names of the files that travel with a checkpoint."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file()
        and path.suffix not in WEIGHTS
        and path.name not in (INDEX, "config.json")
        and not path.name.startswith(".")
    )


def _table(model: Model, experts: str) -> Table:
    """Return what the files will hold, with A_log as long as it came."""
    entries = table(model.config, experts)
    for name, (_, dtype) in entries.items():
        if name.endswith(".A_log"):
            entries[name] = (places.kda_of(model, name).A_log_stored,), dtype
    return entries


def _value(model: Model, name: str) -> Tensor:
    """Return a tensor as the files hold it, but for its dtype."""
    if not name.endswith(".A_log"):
        return places.place(model, name)
    owner = places.kda_of(model, name)
    stored = torch.zeros(owner.A_log_stored)
    stored[: owner.heads] = owner.A_log.detach()
    return stored
