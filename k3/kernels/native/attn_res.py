"""AttnRes mixing natively, with its gradient."""

from typing import Any

import torch
from torch import Tensor

from k3.kernels.native import library
from k3.kernels.native.operation import Floats, Ints, Operation

MAX_BLOCKS = 255
ROWS = 16
"""Rows whose gradients of the query are summed together."""


def mix(
    blocks: Tensor,
    scale: Tensor,
    prefix: Tensor | None,
    query: Tensor,
    eps: float,
    *,
    record: bool = True,
) -> Tensor:
    """Return kernels.attn_res.mix of fp32 sources; `record`: autograd can follow."""
    sources = [blocks, scale, query] + ([] if prefix is None else [prefix])
    given = [x.contiguous() for x in sources]
    return OPERATION(given, (), (eps,), record=record)[0]


def _arguments(given: list[Tensor], eps: float) -> tuple[Any, ...]:
    """Blocks, scale, prefix or nothing, query, eps and the sizes; all contiguous."""
    blocks, scale, query, *prefix = given
    S, D = blocks.shape[-2:]
    return (
        blocks.data_ptr(),
        scale.data_ptr(),
        prefix[0].data_ptr() if prefix else None,
        query.data_ptr(),
        eps,
        scale.numel() // S,
        S,
        D,
    )


def _forward(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    given = [x.contiguous() for x in given]
    out = _like(given, ints, floats)
    library.function("k3_attn_res_mix", "ppppfiiipi")(
        *_arguments(given, floats[0]), out[0].data_ptr(), torch.get_num_threads()
    )
    return out


def _backward(
    saved: list[Tensor], grads: list[Tensor], ints: Ints, floats: Floats
) -> list[Tensor]:
    saved = [x.contiguous() for x in saved]
    dy, scale, query = grads[0].contiguous(), *saved[1:3]
    dblocks, dscale, _, *dprefix = made = [torch.empty_like(x) for x in saved]
    n = scale.numel() // scale.shape[-1]
    parts = query.new_empty(-(-n // ROWS), len(query))
    library.function("k3_attn_res_backward", "ppppfiiipppppi")(
        *_arguments(saved, floats[0]),
        dy.data_ptr(),
        dblocks.data_ptr(),
        dscale.data_ptr(),
        dprefix[0].data_ptr() if dprefix else None,
        parts.data_ptr(),
        torch.get_num_threads(),
    )
    made[2] = parts.sum(0)
    return made


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    blocks = given[0]
    return [blocks.new_empty(*blocks.shape[:-2], blocks.shape[-1])]


OPERATION = Operation("attn_res_mix", _forward, _like, back=_backward)
