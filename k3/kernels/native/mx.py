"""Rounding to MXFP4 natively: kernels.mx.encode and rounded in one pass over memory."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from k3.kernels.native import library

GROUP = 32


def encode(
    x: Float[Tensor, "*rows values"], *, ceil: bool
) -> tuple[UInt8[Tensor, "*rows bytes"], UInt8[Tensor, "*rows groups"], bool]:
    """Return kernels.mx.encode of fp32 values, and whether all of them are finite."""
    x, good = x.contiguous(), torch.empty(1, dtype=torch.uint8)
    *rows, columns = x.shape
    packed = x.new_empty((*rows, columns // 2), dtype=torch.uint8)
    scale = x.new_empty((*rows, columns // GROUP), dtype=torch.uint8)
    library.function("k3_mx_encode", "piipppi")(
        x.data_ptr(),
        scale.numel(),
        ceil,
        packed.data_ptr(),
        scale.data_ptr(),
        good.data_ptr(),
        torch.get_num_threads(),
    )
    return packed, scale, bool(good)


def rounded(
    x: Float[Tensor, "*rows values"], *, ceil: bool
) -> tuple[Float[Tensor, "*rows values"], bool]:
    """Return what decoding `encode` gives, and whether all values are finite."""
    x, good = x.contiguous(), torch.empty(1, dtype=torch.uint8)
    out = torch.empty_like(x)
    library.function("k3_mx_round", "piippi")(
        x.data_ptr(),
        x.numel() // GROUP,
        ceil,
        out.data_ptr(),
        good.data_ptr(),
        torch.get_num_threads(),
    )
    return out, bool(good)
