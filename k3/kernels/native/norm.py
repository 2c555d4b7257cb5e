"""RMSNorm natively: kernels.norm.rms_norm in one pass over memory."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library


def rms_norm(
    x: Float[Tensor, "*B D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*B D"]:
    """Return kernels.norm.rms_norm of fp32 or bf16 rows and an fp32 weight."""
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty(x.shape, dtype=torch.float32)
    width = weight.shape[0]
    library.function("k3_rms_norm", "ppfiipii")(
        x.data_ptr(),
        weight.data_ptr(),
        eps,
        x.numel() // max(width, 1),
        width,
        out.data_ptr(),
        x.dtype == torch.bfloat16,
        torch.get_num_threads(),
    )
    return out
