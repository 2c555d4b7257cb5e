"""Checkpoints to damage: a copy of tiny_release, and small ones made here."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from k3.config import K3Config
from k3.model import Model

TINY = Path(__file__).parents[1] / "golden" / "tiny_release"
Edit = Callable[[dict[str, torch.Tensor]], Any]


@pytest.fixture
def tiny() -> Path:
    """The random checkpoint in the released layout."""
    return TINY


@pytest.fixture
def copied(tmp_path) -> Path:
    """A copy of it to damage."""
    folder = tmp_path / "copied"
    shutil.copytree(TINY, folder)
    return folder


@pytest.fixture
def edit() -> Callable[[Path, int, Edit], None]:
    """Change the tensors of one shard, and the index with it."""

    def change(folder: Path, number: int, how: Edit) -> None:
        shard = f"model-0000{number}-of-000003.safetensors"
        tensors = load_file(folder / shard)
        before = set(tensors)
        how(tensors)
        save_file(tensors, folder / shard, metadata={"format": "pt"})
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        for name in before - set(tensors):
            del index["weight_map"][name]
        index["weight_map"].update(dict.fromkeys(tensors, shard))
        path.write_text(json.dumps(index))

    return change


@pytest.fixture
def tensors_of() -> Callable[[Path], dict[str, torch.Tensor]]:
    """All tensors of a checkpoint, read by safetensors itself."""

    def read(folder: Path) -> dict[str, torch.Tensor]:
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors |= load_file(path)
        return tensors

    return read


@pytest.fixture
def small_config() -> Callable[..., K3Config]:
    """Text only: four layers, six KDA heads, MLA last; any field may be changed."""

    def make(*, bare: bool = False, linear: Any = None, **text: Any) -> K3Config:
        values = json.loads((TINY / "config.json").read_text())
        del values["vision_config"]
        values["text_config"] |= {"num_hidden_layers": 4, **text}
        values["text_config"]["linear_attn_config"] |= {
            "num_heads": 6,
            "head_dim": 8,
            "kda_layers": [1, 2, 3],
            "full_attn_layers": [4],
            **(linear or {}),
        }
        return K3Config.from_dict(values["text_config"] if bare else values)

    return make


@pytest.fixture
def small(small_config) -> Callable[..., Model]:
    """A fresh model of such a config."""
    return lambda **fields: Model(small_config(**fields)).init_weights(seed=3)
