"""Rounding to MXFP4 natively: kernels.mx.encode and rounded in one pass over memory."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from k3.kernels.native import library

GROUP = 32


def encode(
    x: Float[Tensor, "*rows values"], *, ceil: bool
) -> tuple[UInt8[Tensor, "*rows bytes"], UInt8[Tensor, "*rows groups"]] | None:
    """Return kernels.mx.encode of fp32 values, None where one is not finite."""
    x = x.contiguous()
    *rows, columns = x.shape
    packed = x.new_empty((*rows, columns // 2), dtype=torch.uint8)
    scale = x.new_empty((*rows, columns // GROUP), dtype=torch.uint8)
    good = torch.ones(1, dtype=torch.uint8)
    library.function("k3_mx_encode", "piipppi")(
        x.data_ptr(),
        scale.numel(),
        ceil,
        packed.data_ptr(),
        scale.data_ptr(),
        good.data_ptr(),
        torch.get_num_threads(),
    )
    return (packed, scale) if good.item() else None


def rounded(
    x: Float[Tensor, "*rows values"], *, ceil: bool
) -> Float[Tensor, "*rows values"] | None:
    """Return what decoding `encode` gives, None where a value is not finite."""
    x = x.contiguous()
    out, good = torch.empty_like(x), torch.ones(1, dtype=torch.uint8)
    library.function("k3_mx_round", "piippi")(
        x.data_ptr(),
        x.numel() // GROUP,
        ceil,
        out.data_ptr(),
        good.data_ptr(),
        torch.get_num_threads(),
    )
    return out if good.item() else None
