"""NVFP4 of MXFP4 experts: groups of 16 under E4M3 scales, and one scale outside.

A fused product of gate and up has one outer scale for both, so it is found for all
the tensors that share it and given to each.
"""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from k3.errors import ShapeError
from k3.kernels import mx

GROUP = 16
LARGEST, LEAST = 8, -9
"""Exponents of the powers of two that E4M3 holds, subnormal ones included."""


def outer_exponent(*scales: UInt8[Tensor, "*rows groups"]) -> int:
    """log2 of the outer scale that all these tensors of MXFP4 scale bytes share.

    The largest inner scale is then 2^8, so that as many small ones as can be stay.
    """
    if not scales:
        raise ShapeError(
            "an outer scale belongs to tensors: got none; give their scales"
        )
    return max(int(scale.max()) for scale in scales) - 127 - LARGEST


def encode(
    packed: UInt8[Tensor, "*rows bytes"],
    scale: UInt8[Tensor, "*rows groups"],
    outer: int,
) -> tuple[UInt8[Tensor, "*rows bytes"], Tensor, float]:
    """(packed, E4M3 scales, lossless fraction of groups) of an MXFP4 tensor.

    Groups within 17 binades of the largest keep every bit; a value of the others is
    off by at most `error_bound(outer)`.
    """
    exponent = scale.int() - 127 - outer
    if int(exponent.max()) > LARGEST:
        raise ShapeError(
            f"the outer scale must cover every group: got 2^{outer} for a group of "
            f"2^{int(scale.max()) - 127}; take outer_exponent over all its tensors"
        )
    inner = torch.exp2(exponent.clamp(min=LEAST).float())
    values = mx.decode(packed, scale, torch.float64)
    steps = inner.double() * 2.0**outer
    codes = mx.nibbles(values.unflatten(-1, (-1, mx.GROUP)) / steps[..., None])
    flat = codes.flatten(-2)
    joined = flat[..., ::2] | flat[..., 1::2] << 4
    halves = inner.repeat_interleave(mx.GROUP // GROUP, -1).to(torch.float8_e4m3fn)
    kept = decode(joined, halves, outer, torch.float64) == values
    groups = kept.unflatten(-1, (-1, GROUP)).all(-1)
    return joined, halves, float(groups.double().mean())


def decode(
    packed: UInt8[Tensor, "*rows bytes"], scale: Tensor, outer: int, dtype: torch.dtype
) -> Float[Tensor, "*rows values"]:
    """The values of an NVFP4 tensor, [... I/2] and [... I/16] to [... I]."""
    nibbles = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).int()
    size = torch.tensor(mx.E2M1, dtype=dtype)[nibbles & 7]
    signed = torch.where(nibbles > 7, -size, size)
    steps = scale.to(dtype) * 2.0**outer
    return (signed.unflatten(-1, (-1, GROUP)) * steps[..., None]).flatten(-2)


def error_bound(outer: int) -> float:
    """How far a value in a group below the inner scales can be off: half a step."""
    return 0.25 * 2.0 ** (LEAST + outer)
