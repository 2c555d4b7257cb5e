"""AttnRes mixing natively, with its gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.kernels.native import library

MAX_BLOCKS = 255
ROWS = 16
"""Rows whose gradients of the query are summed together."""


def mix(
    blocks: Tensor, scale: Tensor, prefix: Tensor | None, query: Tensor, eps: float
) -> Tensor:
    """Return kernels.attn_res.mix of fp32 sources."""
    if prefix is not None:
        prefix = prefix.contiguous()
    return _Mix.apply(
        blocks.contiguous(), scale.contiguous(), prefix, query.contiguous(), eps
    )


def _arguments(
    blocks: Tensor, scale: Tensor, prefix: Tensor | None, query: Tensor, eps: float
) -> tuple[Any, ...]:
    S, D = blocks.shape[-2:]
    return (
        blocks.data_ptr(),
        scale.data_ptr(),
        None if prefix is None else prefix.data_ptr(),
        query.data_ptr(),
        eps,
        scale.numel() // S,
        S,
        D,
    )


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, blocks: Tensor, scale: Tensor, prefix: Tensor | None, *rest: Any
    ) -> Tensor:
        query, eps = rest
        ctx.save_for_backward(blocks, scale, prefix, query)
        ctx.eps = eps
        out = blocks.new_empty(*blocks.shape[:-2], blocks.shape[-1])
        library.function("k3_attn_res_mix", "ppppfiiipi")(
            *_arguments(blocks, scale, prefix, query, eps),
            out.data_ptr(),
            torch.get_num_threads(),
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        blocks, scale, prefix, query = ctx.saved_tensors
        dblocks, dscale = torch.empty_like(blocks), torch.empty_like(scale)
        dprefix = None if prefix is None else torch.empty_like(prefix)
        n = scale.numel() // scale.shape[-1]
        parts = query.new_empty(-(-n // ROWS), len(query))
        library.function("k3_attn_res_backward", "ppppfiiipppppi")(
            *_arguments(blocks, scale, prefix, query, ctx.eps),
            dy.contiguous().data_ptr(),
            dblocks.data_ptr(),
            dscale.data_ptr(),
            None if dprefix is None else dprefix.data_ptr(),
            parts.data_ptr(),
            torch.get_num_threads(),
        )
        return dblocks, dscale, dprefix, parts.sum(0), None
