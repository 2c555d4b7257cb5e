"""AttnRes mixing in Triton: every source is read once, forward, and twice, backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.kernels.triton.jit import triton_jit

ROWS = 16
"""Rows whose gradients of the query are summed together."""


def mix(
    blocks: Float[Tensor, "*B S D"],
    scale: Float[Tensor, "*B S"],
    prefix: Float[Tensor, "*B D"] | None,
    query: Float[Tensor, " D"],
    eps: float,
) -> Float[Tensor, "*B D"]:
    """Return kernels.attn_res.mix of fp32 sources, at least one of them a block."""
    if prefix is not None:
        prefix = prefix.contiguous()
    return _Mix.apply(
        blocks.contiguous(), scale.contiguous(), prefix, query.contiguous(), eps
    )


@triton_jit
def source(s, row, d, real, blocks, scale, prefix, S, D, eps):
    """Source s of a row and the factor that normalizes it; s = S is the prefix."""
    if s < S:
        at = row * S + s
        x = tl.load(blocks + at * D + d, real, 0.0)
        r = tl.load(scale + at)
    else:
        x = tl.load(prefix + row * D + d, real, 0.0)
        r = 1.0 / tl.sqrt(tl.sum(x * x) / D + eps)
    return x, r


@triton_jit
def forward(blocks, scale, prefix, query, out, S, D, N, eps, WIDTH: tl.constexpr):
    """One row: softmax over N sources as they come, the sum rescaled as it grows."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, WIDTH)
    real = d < D
    q = tl.load(query + d, real, 0.0)
    x, r = source(0, row, d, real, blocks, scale, prefix, S, D, eps)
    most, total, mixed = tl.sum(x * q) * r, 1.0, x
    for s in range(1, N):
        x, r = source(s, row, d, real, blocks, scale, prefix, S, D, eps)
        score = tl.sum(x * q) * r
        top = tl.maximum(most, score)
        old, new = tl.exp(most - top), tl.exp(score - top)
        total = total * old + new
        mixed = mixed * old + x * new
        most = top
    tl.store(out + row * D + d, mixed / total, real)


@triton_jit
def backward(
    blocks, scale, prefix, query, dy, dblocks, dscale, dprefix, parts,
    S, D, N, rows, eps, ROWS: tl.constexpr, SOURCES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Some rows: scores and dy . source first, then each source's gradient."""
    d = tl.arange(0, WIDTH)
    real = d < D
    n = tl.arange(0, SOURCES)
    q = tl.load(query + d, real, 0.0)
    dquery = tl.zeros([WIDTH], tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for row in range(first, tl.minimum(first + ROWS, rows)):
        z = tl.full([SOURCES], float("-inf"), tl.float32)
        dp = tl.zeros([SOURCES], tl.float32)
        y = tl.load(dy + row * D + d, real, 0.0)
        for s in range(0, N):
            x, r = source(s, row, d, real, blocks, scale, prefix, S, D, eps)
            z = tl.where(n == s, tl.sum(x * q) * r, z)
            dp = tl.where(n == s, tl.sum(x * y), dp)
        p = tl.exp(z - tl.max(z))
        p = p / tl.sum(p)
        dz = p * (dp - tl.sum(p * dp))
        for s in range(0, N):
            x, r = source(s, row, d, real, blocks, scale, prefix, S, D, eps)
            weight = tl.sum(tl.where(n == s, p, 0.0))
            slope = tl.sum(tl.where(n == s, dz, 0.0))
            along = tl.sum(x * q)
            dx = weight * y + slope * r * q
            dquery += slope * r * x
            if s < S:
                tl.store(dblocks + (row * S + s) * D + d, dx, real)
                tl.store(dscale + row * S + s, slope * along)
            else:
                dx -= slope * along * r * r * r / D * x
                tl.store(dprefix + row * D + d, dx, real)
    tl.store(parts + tl.program_id(0) * D + d, dquery, real)


def _sizes(blocks: Tensor, prefix: Tensor | None) -> tuple[int, int, int, int]:
    """Rows, blocks, width and sources."""
    S, D = blocks.shape[-2:]
    return blocks.numel() // (S * D), S, D, S + (prefix is not None)


def _shape(D: int) -> dict[str, int]:
    width = triton.next_power_of_2(D)
    return {"WIDTH": width, "num_warps": min(max(width // 512, 4), 16)}


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        blocks, scale, prefix, query, ctx.eps = given
        ctx.save_for_backward(blocks, scale, prefix, query)
        rows, S, D, N = _sizes(blocks, prefix)
        out = blocks.new_empty(*blocks.shape[:-2], D)
        last = blocks if prefix is None else prefix
        if rows:
            forward[(rows,)](
                blocks, scale, last, query, out, S, D, N, ctx.eps, **_shape(D)
            )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        blocks, scale, prefix, query = ctx.saved_tensors
        rows, S, D, N = _sizes(blocks, prefix)
        last = blocks if prefix is None else prefix
        dblocks, dscale, dlast = (torch.empty_like(x) for x in (blocks, scale, last))
        tasks = triton.cdiv(rows, ROWS)
        parts = query.new_empty(tasks, D)
        if rows:
            backward[(tasks,)](
                *(blocks, scale, last, query, dy.contiguous()),
                *(dblocks, dscale, dlast, parts, S, D, N, rows, ctx.eps),
                ROWS=ROWS,
                SOURCES=triton.next_power_of_2(N),
                **_shape(D),
            )
        return dblocks, dscale, None if prefix is None else dlast, parts.sum(0), None
