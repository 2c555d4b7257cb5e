"""Products of matrices and triangular solves, summed in any order."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.enclose.ball import Ball, Unsupported
from k3.verify.enclose.rounding import gamma
from k3.verify.enclose.rules.ring import add, mul, pair


def matmul(run: Any, a: Any, b: Any) -> Ball:
    """a @ b: |error| <= gamma(n) |a| |b|. Source: Higham, equation 3.13."""
    x, y, claimed = pair(run, a, b)
    n = x.m.shape[-1]
    A, B = x.m.abs(), y.m.abs()
    g = gamma(n, run.rounding.wide(claimed)) + gamma(n, 2.0**-53)
    size = (A + x.r) @ (B + y.r)
    r = A @ y.r + x.r @ B + x.r @ y.r + g * size
    # Each product may be flushed to zero.
    r = r + torch.where(size > 0, n * run.rounding.tiny(torch.float32), 0.0)
    return run.out(x.m @ y.m, r, claimed)


def viewed(run: Any, x: Any, op: Callable[[Tensor], Tensor]) -> Ball:
    """The same view of centre and radius."""
    x = run.lift(x)
    return Ball(run, op(x.m), op(x.r), x.dtype, x.least)


def transpose(run: Any, x: Any) -> Ball:
    """Exchange the last two axes."""
    return viewed(run, x, lambda p: p.mT)


def _mv(run: Any, func: Any, a: Any, b: Any) -> Ball:
    column = viewed(run, b, lambda p: p[:, None])
    return viewed(run, matmul(run, a, column), lambda p: p[:, 0])


def _linear(run: Any, func: Any, x: Any, w: Any, *, bias: Any = None) -> Ball:
    out = matmul(run, x, transpose(run, w))
    return out if bias is None else add(run, out, bias)


def _addmm(
    run: Any, func: Any, s: Any, a: Any, *, beta: Any = 1, alpha: Any = 1, **other: Any
) -> Ball:
    (b,) = other.values()
    out = matmul(run, a, b)
    out = out if alpha == 1 else mul(run, out, alpha)
    return add(run, out, s if beta == 1 else mul(run, s, beta))


def solve(run: Any, A: Any, B: Any) -> Ball:
    """X with (I + L) X = B, L the part of A below the diagonal, row by row."""
    a, b, claimed = pair(run, A, B)
    n, u = a.shape[-1], run.rounding.unit(claimed)
    shape = torch.broadcast_shapes(a.m.shape[:-2], b.m.shape[:-2]) + b.m.shape[-2:]
    m, right = torch.zeros(shape, dtype=torch.float64), b.m.expand(shape)
    r, loose = torch.zeros_like(m), b.r.expand(shape)
    for i in range(n):
        row = slice(i, i + 1)
        c, cr = a.m[..., row, :i], a.r[..., row, :i]
        x, xr = m[..., :i, :], r[..., :i, :]
        size = right[..., row, :].abs() + loose[..., row, :]
        size = size + (c.abs() + cr) @ (x.abs() + xr)
        carried = loose[..., row, :] + c.abs() @ xr + cr @ (x.abs() + xr)
        new = run.out(
            right[..., row, :] - c @ x,
            carried + (gamma(i + 1, u) + gamma(i + 1, 2.0**-53)) * size,
            claimed,
        )
        m[..., row, :], r[..., row, :] = new.m, new.r
    return Ball(run, m, r, claimed)


def _solve_triangular(
    run: Any,
    func: Any,
    A: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Ball:
    if upper or not left or not unitriangular:
        raise Unsupported(f"{func}: balls solve unit lower triangular systems only")
    return solve(run, A, B)


def _bilinear(run: Any, func: Any, x: Any, size: Any, **given: Any) -> Ball:
    """Bilinear stretch: weights of four neighbours, themselves computed in fp32."""
    x = run.lift(x)
    m, r = func(x.m, size, **given), func(x.r, size, **given)
    u = run.rounding.wide(x.dtype)
    largest = (x.m.abs() + x.r).amax((-2, -1), keepdim=True)
    places = sum(x.shape[-2:]) + sum(m.shape[-2:])
    return run.out(m, r + (8 + 4 * places) * u * largest, x.dtype)


RULES: dict[str, Callable[..., Any]] = {
    "mm": lambda run, func, a, b: matmul(run, a, b),
    "bmm": lambda run, func, a, b: matmul(run, a, b),
    "matmul": lambda run, func, a, b: matmul(run, a, b),
    "mv": _mv,
    "linear": _linear,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "linalg_solve_triangular": _solve_triangular,
    "upsample_bilinear2d": _bilinear,
}
