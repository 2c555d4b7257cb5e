"""RMSNorm natively: kernels.norm.rms_norm in one pass over memory."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library
from k3.kernels.native.operation import Floats, Ints, Operation


def rms_norm(
    x: Float[Tensor, "*B D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*B D"]:
    """Return kernels.norm.rms_norm of rows and a weight, each in fp32 or bf16."""
    return OPERATION([x, weight], (), (eps,), record=False)[0]


def _run(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    x, weight = (part.contiguous() for part in given)
    out = _like(given, ints, floats)
    width = weight.shape[0]
    library.function("k3_rms_norm", "ppfiipiii")(
        x.data_ptr(),
        weight.data_ptr(),
        floats[0],
        x.numel() // max(width, 1),
        width,
        out[0].data_ptr(),
        x.dtype == torch.bfloat16,
        weight.dtype == torch.bfloat16,
        torch.get_num_threads(),
    )
    return out


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    x, weight = given
    wider = torch.promote_types(x.dtype, weight.dtype)
    return [torch.empty(x.shape, dtype=wider, device=x.device)]


OPERATION = Operation("rms_norm", _run, _like)
