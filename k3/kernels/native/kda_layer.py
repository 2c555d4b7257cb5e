"""A KDA layer between its projections natively: convolution to gated output at once."""

from dataclasses import dataclass
from struct import Struct

import torch
from torch import Tensor

from k3.kernels.native import library
from k3.kernels.native.kda import lengths
from k3.kernels.native.operation import Floats, Ints, Operation, blank

CALL = Struct("24q2dq")
"""The fields of `LayerCall` in kda_layer.h, in their order."""


@dataclass(frozen=True, slots=True)
class Projected:
    """What the projections made of the tokens, in the trunk's dtype, [... channels]."""

    q: Tensor
    k: Tensor
    v: Tensor
    z: Tensor
    b: Tensor
    gate: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all six in the kernel's order."""
        return self.q, self.k, self.v, self.z, self.b, self.gate


@dataclass(frozen=True, slots=True)
class Weights:
    """The layer's own weights, fp32: three convolutions, gate, output norm."""

    taps: tuple[Tensor, Tensor, Tensor]
    A_log: Tensor
    dt_bias: Tensor
    norm: Tensor
    eps: float
    lower_bound: float | None

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all six tensors."""
        return *self.taps, self.A_log, self.dt_bias, self.norm


def run(
    given: Projected,
    weights: Weights,
    window: Tensor,
    state: Tensor,
    lens: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """(gated output like `given.gate`, window after, state after) of packed sequences.

    window [S past C], state [S H V K]; S lengths add up to the tokens.
    """
    bound = weights.lower_bound
    tensors = [*given.tensors(), *weights.tensors(), window, state]
    floats = (weights.eps,) if bound is None else (weights.eps, bound)
    out, after, final = OPERATION(tensors, lens, floats, record=False)
    return out, after, final


def _run(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    given = [x.contiguous() for x in given]
    projected, held, (window, state) = given[:6], given[6:12], given[12:]
    out, after, final = made = _like(given, ints, floats)
    _, H, V, K = state.shape
    eps, *bound = floats
    call = CALL.pack(
        *(x.data_ptr() for x in projected),
        *(x.data_ptr() for x in held[:3]),
        window.data_ptr(),
        *(x.data_ptr() for x in held[3:]),
        *(x.data_ptr() for x in (state, final, after, out)),
        lengths(tuple(ints)).buffer_info()[0],
        *(len(ints), H, K, V, window.shape[1], torch.get_num_threads()),
        *(bound or [0.0]),
        eps,
        bool(bound),
    )
    library.function("k3_kda_layer", "pi")(call, out.dtype == torch.bfloat16)
    return made


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    return [blank(given[5]), blank(given[12]), blank(given[13])]


OPERATION = Operation("kda_layer", _run, _like)
