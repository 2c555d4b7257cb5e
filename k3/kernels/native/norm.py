"""RMSNorm natively: kernels.norm.rms_norm in one pass over memory."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library
from k3.kernels.native.operation import Floats, Ints, Operation


def rms_norm(
    x: Float[Tensor, "*B D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*B D"]:
    """Return kernels.norm.rms_norm of fp32 or bf16 rows and an fp32 weight."""
    return OPERATION([x, weight], (), (eps,), record=False)[0]


def _run(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    x, weight = (part.contiguous() for part in given)
    out = _like(given, ints, floats)
    width = weight.shape[0]
    library.function("k3_rms_norm", "ppfiipii")(
        x.data_ptr(),
        weight.data_ptr(),
        floats[0],
        x.numel() // max(width, 1),
        width,
        out[0].data_ptr(),
        x.dtype == torch.bfloat16,
        torch.get_num_threads(),
    )
    return out


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    return [torch.empty(given[0].shape, dtype=torch.float32, device=given[0].device)]


OPERATION = Operation("rms_norm", _run, _like)
