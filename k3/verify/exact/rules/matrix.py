"""Matrix products, triangular solves and interpolation."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact.move import result_dtype
from k3.verify.exact.rules.ring import add, mul
from k3.verify.exact.tensor import ExactTensor, Unsupported, make


def matmul(run: Any, a: Any, b: Any) -> ExactTensor:
    """a @ b for matrices and batches of them."""
    claimed = result_dtype(a, b)
    x, y = run.lift(a), run.lift(b)
    levels = zip(run.tower.fields, x.c, y.c, strict=False)
    return make(run, x.f @ y.f, [fl.matmul(p, q) for fl, p, q in levels], claimed)


def reshaped(run: Any, x: Any, op: Callable[[Tensor], Tensor]) -> ExactTensor:
    """The same view of a shadow and its residues, as a fresh tensor."""
    x = run.lift(x)
    return make(run, op(x.f), [op(p) for p in x.c], x.dtype)


def transpose(run: Any, x: Any) -> ExactTensor:
    """Exchange the last two axes."""
    return reshaped(run, x, lambda p: p.mT)


def _mv(run: Any, func: Any, a: Any, b: Any) -> ExactTensor:
    column = reshaped(run, b, lambda p: p[:, None])
    return reshaped(run, matmul(run, a, column), lambda p: p[:, 0])


def _linear(run: Any, func: Any, x: Any, w: Any, *, bias: Any = None) -> ExactTensor:
    x = run.lift(x)
    rows = reshaped(run, x, lambda p: p.reshape(-1, p.shape[-1]))
    out = matmul(run, rows, transpose(run, w))
    shape = (*x.shape[:-1], out.shape[-1])
    out = reshaped(run, out, lambda p: p.reshape(shape))
    return out if bias is None else add(run, out, bias)


def _addmm(
    run: Any, func: Any, s: Any, a: Any, *, beta: Any = 1, alpha: Any = 1, **other: Any
) -> ExactTensor:
    (b,) = other.values()
    out = matmul(run, a, b)
    out = out if alpha == 1 else mul(run, out, alpha)
    return add(run, out, s if beta == 1 else mul(run, s, beta))


def _outer(run: Any, func: Any, a: Any, b: Any) -> ExactTensor:
    left = reshaped(run, a, lambda p: p[:, None])
    return mul(run, left, reshaped(run, b, lambda p: p[None]))


def solve(run: Any, A: Any, B: Any, upper: bool, unit: bool) -> ExactTensor:
    """X with A X = B for a triangular A, by substitution."""
    claimed = result_dtype(A, B)
    a, b = run.lift(A), run.lift(B)
    shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    n = a.shape[-1]
    c = []
    for field, p, q in zip(run.tower.fields, a.c, b.c, strict=False):
        X, right = torch.zeros(shape, dtype=p.dtype), q.expand(shape)
        for r in reversed(range(n)) if upper else range(n):
            done = slice(r + 1, n) if upper else slice(0, r)
            y = right[..., r, :]
            if done.start < done.stop:
                known = field.matmul(p[..., r : r + 1, done], X[..., done, :])
                y = field.sub(y, known[..., 0, :])
            if not unit:
                y = field.mul(y, field.inv(p[..., r, r])[..., None])
            X[..., r, :] = y
        c.append(X)
    f = torch.linalg.solve_triangular(a.f, b.f, upper=upper, unitriangular=unit)
    return make(run, f, c, claimed)


def _solve_triangular(
    run: Any,
    func: Any,
    A: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> ExactTensor:
    if left:
        return solve(run, A, B, upper, unitriangular)
    # X A = B is A^T X^T = B^T.
    turned = solve(run, transpose(run, A), transpose(run, B), not upper, unitriangular)
    return transpose(run, turned)


def stretch(run: Any, size: int, table: int) -> ExactTensor:
    """The matrix [size table] of bilinear interpolation, align_corners false."""
    rows = torch.zeros(size, table, dtype=torch.float64)
    for i in range(size):
        at = max(Fraction(0), Fraction(2 * i + 1, 2) * table / size - Fraction(1, 2))
        low = min(int(at), table - 1)
        rows[i, low] += float(1 - (at - low))
        rows[i, min(low + 1, table - 1)] += float(at - low)
    return run.lift(rows)


def _bilinear(run: Any, func: Any, x: Any, size: Any, **given: Any) -> ExactTensor:
    _refuse_corners(func, given)
    x = run.lift(x)
    if size is None:
        factors = zip(x.shape[-2:], given["scale_factors"], strict=True)
        size = [int(n * s) for n, s in factors]
    down, across = (stretch(run, n, m) for n, m in zip(size, x.shape[-2:], strict=True))
    return matmul(run, matmul(run, down, x), transpose(run, across))


def _bilinear_backward(
    run: Any, func: Any, g: Any, size: Any, **given: Any
) -> ExactTensor:
    _refuse_corners(func, given)
    pairs = zip(size, given["input_size"][-2:], strict=True)
    down, across = (stretch(run, n, m) for n, m in pairs)
    return matmul(run, matmul(run, transpose(run, down), g), across)


def _refuse_corners(func: Any, given: Any) -> None:
    if given["align_corners"]:
        raise Unsupported(f"{func} has a rule for align_corners=False only")


RULES: dict[str, Callable[..., Any]] = {
    "mm": lambda run, func, a, b: matmul(run, a, b),
    "bmm": lambda run, func, a, b: matmul(run, a, b),
    "matmul": lambda run, func, a, b: matmul(run, a, b),
    "mv": _mv,
    "linear": _linear,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "outer": _outer,
    "linalg_solve_triangular": _solve_triangular,
    "upsample_bilinear2d": _bilinear,
    "upsample_bilinear2d_backward": _bilinear_backward,
}
