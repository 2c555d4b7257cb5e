"""SiTU, the gated activation with both factors capped."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import choose, precision
from k3.kernels.native import situ as native


def situ(
    gate: Float[Tensor, "*B F"], up: Float[Tensor, "*B F"], beta: float, linear: float
) -> Float[Tensor, "*B F"]:
    """Eq. 12: beta tanh(gate/beta) sigmoid(gate) * linear tanh(up/linear).

    The sigmoid takes the raw gate. Computed in fp32 or wider and cast back;
    bounded by beta * linear (Eq. 19).
    Matches: spec.situ.situ.
    """
    if choose.operation(gate, up) and gate.dtype == up.dtype:
        record = choose.recorded(gate, up)
        return native.situ(gate, up, beta, linear, record=record)
    if choose.triton(gate, up) and gate.dtype == up.dtype:
        from k3.kernels.triton import situ as triton

        return triton.situ(gate, up, beta, linear)
    g, u = precision.wide(gate), precision.wide(up)
    capped = torch.tanh(g / beta) * torch.sigmoid(g)
    return (capped * torch.tanh(u / linear) * (beta * linear)).to(gate.dtype)
