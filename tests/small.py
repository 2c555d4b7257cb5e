"""Small models of odd sizes, with every mechanism and weights that matter."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from k3.config import K3Config
from k3.model import DecodeState, Model
from k3.model.cache import MLACache

TINY = Path(__file__).parent / "golden" / "tiny_release"
TEXT = {
    "hidden_size": 26,
    "intermediate_size": 30,
    "vocab_size": 61,
    "moe_intermediate_size": 14,
    "routed_expert_hidden_size": 18,
    "bos_token_id": 58,
    "eos_token_id": 59,
    "pad_token_id": 60,
    "quantization_config": None,
}
LINEAR = {"head_dim": 12, "value_head_dim": 20, "num_heads": 5}
VISION = {"vt_num_hidden_layers": 2, "text_hidden_size": 26}
MEDIA = 57


def config(*, vision: Any = None, linear: Any = None, **text: Any) -> K3Config:
    """7 layers, 3 MLA and 5 KDA heads, K = 12, V = 20, 11 experts top-3, blocks of 3.

    `vision` is a dict of what the tower has different, None for no tower.
    """
    values = json.loads((TINY / "config.json").read_text())
    values |= {k: TEXT[k] for k in ("bos_token_id", "eos_token_id", "pad_token_id")}
    values["media_placeholder_token_id"] = MEDIA
    values["text_config"] |= TEXT | text
    values["text_config"]["linear_attn_config"] |= LINEAR | (linear or {})
    values["vision_config"] |= VISION | (vision or {})
    if vision is None:
        del values["vision_config"]
    return K3Config.from_dict(values)


def schedule(layers: int) -> dict[str, list[int]]:
    """The layer lists of a depth that is a multiple of four, for `linear`."""
    mla = [i for i in range(1, layers + 1) if i % 4 == 0]
    kda = [i for i in range(1, layers + 1) if i % 4]
    return {"full_attn_layers": mla, "kda_layers": kda}


def model(
    dtype: torch.dtype = torch.float32,
    made: K3Config | None = None,
    seed: int = 5,
) -> Model:
    """A model whose weights make every part change the logits; the same in any dtype.

    Weights are drawn in fp64 and cast, so that dtypes can be compared.
    """
    fresh = Model(made or config(), dtype=torch.float64).init_weights(seed)
    generator = torch.Generator().manual_seed(seed)

    def draw(p: Tensor, low: float, high: float) -> None:
        p.detach().uniform_(low, high, generator=generator)

    for name, p in fresh.named_parameters():
        if "norm" in name.split(".")[-2]:
            draw(p, 0.8, 1.2)
        elif name.endswith("e_score_correction_bias"):
            draw(p, -0.1, 0.1)
        elif name.endswith("dt_bias"):
            draw(p, -4.0, 1.0)
        elif p.dim() > 1:
            bound = 1.2 * p[0].numel() ** -0.5
            draw(p, -bound, bound)
    return fresh.to(dtype)


def ids(*shape: int, seed: int = 1, words: int = 57) -> Tensor:
    """Random token ids, without special ones."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, words, shape, generator=generator)


def gap(got: Tensor, want: Tensor) -> float:
    """Largest difference over the largest value wanted; inf where got is not finite."""
    assert got.shape == want.shape
    if not want.numel():
        return 0.0
    got, want = got.detach().double(), want.detach().double()
    worst = (got - want).abs().max()
    scale = want.abs().max().clamp_min(1e-6)
    return float(torch.nan_to_num(worst / scale, nan=torch.inf))


def state_gap(got: DecodeState, want: DecodeState) -> float:
    """The largest gap over memories, windows and rows of every sequence in a state."""
    assert got.lens == want.lens
    return max(
        gap(a, b)
        for x, y in zip(got.caches, want.caches, strict=True)
        for a, b in zip(_carried(x), _carried(y), strict=True)
    )


def _carried(cache: Any) -> list[Tensor]:
    """What a cache carries, without room or rows behind the end of a sequence."""
    if isinstance(cache, MLACache):
        return [cache.of(b) for b in range(len(cache.lens))]
    return [cache.state, cache.window]
