"""SiTU natively, with its gradient."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.kernels.native import library


def situ(
    gate: Float[Tensor, "*B F"], up: Float[Tensor, "*B F"], beta: float, linear: float
) -> Float[Tensor, "*B F"]:
    """Return kernels.situ.situ of two fp32 or two bf16 tensors."""
    return _Situ.apply(gate.contiguous(), up.contiguous(), beta, linear)


def run(gate: Tensor, up: Tensor, beta: float, linear: float, out: Tensor) -> None:
    """Write SiTU of contiguous tensors into `out`, which may be one of them."""
    library.function("k3_situ", "ppffipii")(
        gate.data_ptr(),
        up.data_ptr(),
        beta,
        linear,
        gate.numel(),
        out.data_ptr(),
        gate.dtype == torch.bfloat16,
        torch.get_num_threads(),
    )


def gradients(
    dy: Tensor, gate: Tensor, up: Tensor, beta: float, linear: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients of gate and up for that of the result."""
    dgate, dup = torch.empty_like(gate), torch.empty_like(up)
    library.function("k3_situ_backward", "pppffippii")(
        dy.contiguous().data_ptr(),
        gate.data_ptr(),
        up.data_ptr(),
        beta,
        linear,
        gate.numel(),
        dgate.data_ptr(),
        dup.data_ptr(),
        gate.dtype == torch.bfloat16,
        torch.get_num_threads(),
    )
    return dgate, dup


class _Situ(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gate: Tensor, up: Tensor, beta: float, linear: float
    ) -> Tensor:
        ctx.save_for_backward(gate, up)
        ctx.caps = beta, linear
        out = torch.empty_like(gate)
        run(gate, up, beta, linear, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        gate, up = ctx.saved_tensors
        return *gradients(dy, gate, up, *ctx.caps), None, None
