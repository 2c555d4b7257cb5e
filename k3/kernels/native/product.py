"""Products of a few rows with a matrix natively: dense, narrower than them, MXFP4."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from k3.kernels.native import library


def trunk(values: torch.dtype, matrices: torch.dtype) -> int:
    """Return what the kernels call a trunk: fp32 0, bf16 1, 2 for bf16 under fp32."""
    narrow = matrices == torch.bfloat16
    return 1 if values == torch.bfloat16 else 2 * narrow


def product(
    x: Float[Tensor, "B columns"],
    weight: Float[Tensor, "rows columns"] | UInt8[Tensor, "rows bytes"],
    scale: UInt8[Tensor, "rows groups"] | None = None,
) -> Float[Tensor, "B rows"]:
    """Return x W^T in the dtype of x, summed in fp32; W of that dtype, bf16 or MXFP4.

    A row of x gives the same bits whatever the others are. Weights are read once for
    every four rows. Matches: torch.nn.functional.linear of the decoded weight.
    """
    x, weight = x.contiguous(), weight.contiguous()
    out = x.new_empty(x.shape[0], weight.shape[0])
    if scale is not None:
        scale = scale.contiguous()
    library.function("k3_product", "pppiiipii")(
        x.data_ptr(),
        weight.data_ptr(),
        None if scale is None else scale.data_ptr(),
        x.shape[0],
        weight.shape[0],
        x.shape[1],
        out.data_ptr(),
        trunk(x.dtype, weight.dtype),
        torch.get_num_threads(),
    )
    return out
