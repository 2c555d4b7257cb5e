"""MXFP8: 8-bit floats in groups of 32 that share one power-of-two scale byte.

Values are E4M3 of at most 448. The paper names MXFP8 activations and no scale rule;
ours is the least scale under which the group's largest magnitude is representable.
"""

from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.errors import ShapeError

GROUP = 32
LARGEST = 448.0


def encode(
    x: Float[Tensor, "*rows values"],
) -> tuple[Float[Tensor, "*rows values"], UInt8[Tensor, "*rows groups"]]:
    """(elements, scale) of the nearest values, ties to the even code.

    Elements are float8_e4m3fn; a scale byte e means 2^(e - 127).
    Matches: spec.mxfp8.encode_block, bit for bit.
    Raises: ShapeError for rows that are no multiple of 32, and for inf or NaN.
    """
    groups = _groups(x)
    scale = _scale(groups)
    # Two factors: one would overflow for the smallest scales.
    half = (127 - scale.to(x.dtype)) / 2
    up, down = torch.exp2(half.floor())[..., None], torch.exp2(half.ceil())[..., None]
    elements = (groups * up * down).to(torch.float8_e4m3fn)
    return elements.view(x.shape), scale


def decode(
    elements: Float[Tensor, "*rows values"],
    scale: UInt8[Tensor, "*rows groups"],
    dtype: torch.dtype,
) -> Float[Tensor, "*rows values"]:
    """Elements times their scales. Matches: spec.mxfp8.decode_block."""
    factors = torch.exp2(scale.to(dtype) - 127)
    groups = elements.to(dtype).unflatten(-1, (-1, GROUP))
    return (groups * factors[..., None]).flatten(-2)


def rounded(x: Float[Tensor, "*rows values"]) -> Float[Tensor, "*rows values"]:
    """The nearest values that MXFP8 holds, in the dtype of x. Raises: ShapeError."""
    elements, scale = encode(x)
    return decode(elements, scale, x.dtype)


def straight_through(
    x: Float[Tensor, "*rows values"],
) -> Float[Tensor, "*rows values"]:
    """`rounded`, with the gradient of the identity. Raises: ShapeError."""
    out: Tensor = _StraightThrough.apply(x)
    return out


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return rounded(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> Tensor:
        return dout


def _groups(x: Tensor) -> Tensor:
    if x.shape[-1] % GROUP:
        raise ShapeError(
            f"MXFP8 holds rows of a multiple of {GROUP} values: got {x.shape[-1]}; "
            "pad the row or leave activations plain"
        )
    return x.detach().unflatten(-1, (-1, GROUP))


def _scale(groups: Tensor) -> Tensor:
    """The least byte with |x| <= 448 * 2^(byte - 127), at least 0."""
    amax = groups.abs().amax(-1)
    if not bool(amax.isfinite().all()):
        raise ShapeError("MXFP8 holds finite values: got inf or NaN; clean the tensor")
    # amax = mantissa * 2^exponent with mantissa in [1/2, 1); 448 = 0.875 * 2^9.
    mantissa, exponent = torch.frexp(amax)
    byte = 127 + exponent - 9 + (mantissa > 0.875).int()
    return torch.where(amax == 0, 0, byte).clamp(0, 254).to(torch.uint8)
