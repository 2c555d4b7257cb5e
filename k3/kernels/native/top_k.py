"""The largest of each row natively: kernels.moe.top_k without a sort."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.kernels.native import library
from k3.kernels.native.operation import Floats, Ints, Operation

MOST = 64
"""So many are kept in order beside a row."""


def top_k(values: Float[Tensor, "T E"], k: int) -> Int[Tensor, "T k"]:
    """Return kernels.moe.top_k of fp32 values; NaN is above all, as in torch.topk."""
    return OPERATION([values.detach()], (k,), (), record=False)[0]


def _run(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    values = given[0].contiguous()
    out = _like(given, ints, floats)
    library.function("k3_top_k", "piiipi")(
        values.data_ptr(),
        *values.shape,
        ints[0],
        out[0].data_ptr(),
        torch.get_num_threads(),
    )
    return out


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    values = given[0]
    return [values.new_empty(values.shape[0], ints[0], dtype=torch.int64)]


OPERATION = Operation("top_k", _run, _like)
