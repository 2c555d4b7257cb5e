"""SiTU with its gradient in Triton."""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.kernels.triton.jit import triton_jit

BLOCK = 1024


def situ(
    gate: Float[Tensor, "*B F"], up: Float[Tensor, "*B F"], beta: float, linear: float
) -> Float[Tensor, "*B F"]:
    """Return kernels.situ.situ of two fp32 or two bf16 tensors."""
    return _Situ.apply(gate.contiguous(), up.contiguous(), beta, linear)


@triton_jit
def tanh(x):
    """tanh with the leading bits kept near 0, where the quotient would lose them."""
    size = tl.abs(x)
    e = tl.exp(-2.0 * size)
    q = x * x
    series = -0.01005 * q + 0.0215926
    series = series * q - 0.05396825
    series = series * q + 0.13333333
    series = series * q - 0.33333333
    near = x + x * q * series
    far = (1.0 - e) / (1.0 + e)
    return tl.where(size < 0.35, near, tl.where(x < 0.0, -far, far))


@triton_jit
def capped(gate, up, beta, linear):
    """beta tanh(gate/beta) sigmoid(gate) * linear tanh(up/linear) of fp32 values."""
    return tanh(gate / beta) * tl.sigmoid(gate) * tanh(up / linear) * (beta * linear)


@triton_jit
def forward(gate, up, out, size, beta, linear, BLOCK: tl.constexpr):
    """One block of values."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = at < size
    g = tl.load(gate + at, real, 0.0).to(tl.float32)
    u = tl.load(up + at, real, 0.0).to(tl.float32)
    tl.store(out + at, capped(g, u, beta, linear).to(out.dtype.element_ty), real)


@triton_jit
def backward(dy, gate, up, dgate, dup, size, beta, linear, BLOCK: tl.constexpr):
    """The gradients of one block of values."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = at < size
    d = tl.load(dy + at, real, 0.0).to(tl.float32)
    g = tl.load(gate + at, real, 0.0).to(tl.float32)
    u = tl.load(up + at, real, 0.0).to(tl.float32)
    t, s, c = tanh(g / beta), tl.sigmoid(g), tanh(u / linear)
    slope = (1.0 - t * t) * s / beta + t * s * (1.0 - s)
    dg = d * slope * c * (beta * linear)
    du = d * t * s * (1.0 - c * c) * beta
    tl.store(dgate + at, dg.to(dgate.dtype.element_ty), real)
    tl.store(dup + at, du.to(dup.dtype.element_ty), real)


class _Situ(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gate: Tensor, up: Tensor, beta: float, linear: float
    ) -> Tensor:
        ctx.save_for_backward(gate, up)
        ctx.caps = beta, linear
        out, size = torch.empty_like(gate), gate.numel()
        if size:
            forward[(triton.cdiv(size, BLOCK),)](
                gate, up, out, size, beta, linear, BLOCK=BLOCK
            )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        gate, up = ctx.saved_tensors
        dgate, dup, size = torch.empty_like(gate), torch.empty_like(up), gate.numel()
        if size:
            backward[(triton.cdiv(size, BLOCK),)](
                dy.contiguous(), gate, up, dgate, dup, size, *ctx.caps, BLOCK=BLOCK
            )
        return dgate, dup, None, None
