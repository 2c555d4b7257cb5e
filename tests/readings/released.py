"""The tiny checkpoint in the released layout, as float64 arrays for the spec."""

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
from safetensors.torch import load_file

from k3.config import K3Config

PLACE = Path(__file__).parents[1] / "golden" / "tiny_release"


@cache
def golden():
    with np.load(PLACE / "golden.npz") as file:
        return dict(file)


@cache
def config():
    return K3Config.load(PLACE)


@cache
def tensors():
    """The stored tensors, experts still packed, without the text prefix."""
    out = {}
    for shard in sorted(PLACE.glob("*.safetensors")):
        out |= load_file(shard)
    return {name.removeprefix("language_model."): x for name, x in out.items()}


def decode(packed, scale):
    """MXFP4 by ml_dtypes: another reader than ours."""
    nibbles = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).numpy()
    values = nibbles.view(ml_dtypes.float4_e2m1fn).astype(float)
    factors = scale.numpy().view(ml_dtypes.float8_e8m0fnu).astype(float)
    return values * np.repeat(factors, 32, -1)


@cache
def weights():
    """Every tensor decoded; A_log cut to its heads."""
    out = {}
    for name, x in tensors().items():
        if name.endswith("weight_packed"):
            scale = tensors()[name.replace("_packed", "_scale")]
            out[name.removesuffix("_packed")] = decode(x, scale)
        elif not name.endswith("weight_scale"):
            out[name] = x.double().numpy()
    heads = config().text.linear_attn_config.num_heads
    return {n: x[:heads] if n.endswith("A_log") else x for n, x in out.items()}
