"""SiTU natively, with its gradient."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library
from k3.kernels.native.operation import Floats, Ints, Operation, blank


def situ(
    gate: Float[Tensor, "*B F"],
    up: Float[Tensor, "*B F"],
    beta: float,
    linear: float,
    *,
    record: bool = True,
) -> Float[Tensor, "*B F"]:
    """Return kernels.situ.situ of two fp32 or two bf16 tensors.

    With `record`, autograd can follow.
    """
    given = [gate.contiguous(), up.contiguous()]
    return OPERATION(given, (), (beta, linear), record=record)[0]


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
    dgate, dup, dy = torch.empty_like(gate), torch.empty_like(up), dy.contiguous()
    library.function("k3_situ_backward", "pppffippii")(
        dy.data_ptr(),
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


def _forward(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    gate, up = (x.contiguous() for x in given)
    out = torch.empty_like(gate)
    run(gate, up, floats[0], floats[1], out)
    return [out]


def _backward(
    saved: list[Tensor], grads: list[Tensor], ints: Ints, floats: Floats
) -> list[Tensor]:
    gate, up = (x.contiguous() for x in saved)
    return list(gradients(grads[0], gate, up, floats[0], floats[1]))


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    return [blank(given[0])]


OPERATION = Operation("situ", _forward, _like, back=_backward)
