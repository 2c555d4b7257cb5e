"""Sums, products and quotients of balls, casts, and sums over axes."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from k3.verify.enclose.ball import Ball, Unsupported
from k3.verify.enclose.rounding import BITS, gamma

TINIEST = 2.0**-1022


@cache
def _promoted(kinds: tuple[tuple[torch.dtype, bool], ...]) -> torch.dtype:
    made = [torch.empty((1,) if axes else (), dtype=d) for d, axes in kinds]
    found = made[0].dtype
    for x in made[1:]:
        found = torch.result_type(torch.empty((1,), dtype=found), x)
    return found


def result_dtype(*parts: Any) -> torch.dtype:
    """What torch's promotion gives; tensors without axes yield to the others."""
    tensors = [x for x in parts if isinstance(x, Tensor) and x.dtype in BITS]
    if not tensors:
        return torch.float32
    wide = [x for x in tensors if x.dim()] or tensors
    return _promoted(tuple((x.dtype, bool(x.dim())) for x in wide))


def pair(run: Any, a: Any, b: Any) -> tuple[Ball, Ball, torch.dtype]:
    """Both operands as balls, and the dtype of their result."""
    claimed = result_dtype(a, b)
    return operand(run, a, claimed), operand(run, b, claimed), claimed


def operand(run: Any, x: Any, dtype: torch.dtype) -> Ball:
    """A number, or a tensor as an operation of this dtype takes it."""
    if not isinstance(x, Tensor):
        return run.scalar(x, dtype)
    if not isinstance(x, Ball) and x.dim() == 0 and x.dtype == torch.float64:
        # A Python number that torch has wrapped.
        return run.scalar(x.item(), dtype)
    lifted = run.lift(x, dtype)
    return cast(run, lifted, dtype) if BITS[lifted.dtype] > BITS[dtype] else lifted


def add(run: Any, a: Any, b: Any) -> Ball:
    """a + b."""
    x, y, claimed = pair(run, a, b)
    least = x.least + y.least
    if not isinstance(b, Tensor):
        least = x.least + float(y.m - y.r)
    return run.out(x.m + y.m, x.r + y.r, claimed, least=least)


def sub(run: Any, a: Any, b: Any) -> Ball:
    """a - b."""
    x, y, claimed = pair(run, a, b)
    return run.out(x.m - y.m, x.r + y.r, claimed)


def spread(x: Ball, y: Ball) -> Tensor:
    """The radius that a product carries on."""
    return x.m.abs() * y.r + y.m.abs() * x.r + x.r * y.r


def mul(run: Any, a: Any, b: Any) -> Ball:
    """a b; what is lost below float64's range is added."""
    x, y, claimed = pair(run, a, b)
    m = x.m * y.m
    faded = (m == 0) & (x.m != 0) & (y.m != 0)
    return run.out(m, torch.where(faded, TINIEST, 0.0) + spread(x, y), claimed)


def div(run: Any, a: Any, b: Any) -> Ball:
    """a / b, unknown where b may be zero."""
    x, y, claimed = pair(run, a, b)
    low = torch.maximum(y.m.abs() - y.r, torch.full_like(y.m, y.least))
    m = x.m / y.m
    r = torch.where(low > 0, (x.r + m.abs() * y.r) / low, math.inf)
    return run.out(m, r, claimed)


def square(run: Any, x: Ball) -> Ball:
    """x^2, never negative."""
    x = run.lift(x)
    return run.out(x.m * x.m, spread(x, x), x.dtype, least=0.0)


def axes(x: Tensor, dim: Any) -> list[int]:
    """Axes as a list, all of them by default."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return list(dim) if isinstance(dim, list | tuple) else [dim]


def total(
    run: Any,
    x: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    mean: bool = False,
    dtype: torch.dtype | None = None,
) -> Ball:
    """Sum or mean over axes, added in any order."""
    x, claimed = run.lift(x), dtype or x.dtype
    dims = axes(x, dim)
    n = math.prod(x.shape[d] for d in dims)
    if not dims:
        return x
    m, r = x.m.sum(dims, keepdim), x.r.sum(dims, keepdim)
    size = (x.m.abs() + x.r).sum(dims, keepdim)
    r = r + gamma(n + mean, run.rounding.wide(claimed)) * size
    # A sum of what is never negative is none either; a mean keeps the least entry.
    least = 0.0 if x.least >= 0 else -math.inf
    if mean:
        m, r = m / n, r / n
    return run.out(m, r, claimed, least=least)


def _sum(run: Any, func: Any, x: Any, dim: Any = None, **given: Any) -> Ball:
    keepdim, dtype = given.get("keepdim", False), given.get("dtype")
    mean = func._schema.name.endswith("mean")
    return total(run, x, dim, keepdim, mean=mean, dtype=dtype)


def _cumsum(
    run: Any, func: Any, x: Any, dim: int, *, dtype: torch.dtype | None = None
) -> Ball:
    x = run.lift(x)
    size = (x.m.abs() + x.r).cumsum(dim)
    u = run.rounding.wide(dtype or x.dtype)
    r = x.r.cumsum(dim) + gamma(x.shape[dim], u) * size
    return run.out(x.m.cumsum(dim), r, dtype or x.dtype)


def _scaled(op: Callable[..., Ball]) -> Callable[..., Ball]:
    def rule(run: Any, func: Any, a: Any, b: Any, *, alpha: Any = 1) -> Ball:
        return op(run, a, b if alpha == 1 else mul(run, b, alpha))

    return rule


def _addcmul(
    run: Any, func: Any, s: Any, a: Any, *, tensor2: Any, value: Any = 1
) -> Ball:
    product = mul(run, a, tensor2)
    return add(run, s, product if value == 1 else mul(run, product, value))


def _div(run: Any, func: Any, a: Any, b: Any, *, rounding_mode: Any = None) -> Ball:
    if rounding_mode is not None:
        raise Unsupported(f"{func} rounds to whole numbers: balls have no such rule")
    return div(run, a, b)


def cast(run: Any, x: Any, dtype: torch.dtype | None) -> Any:
    """The value in another dtype: one rounding, where that is narrower."""
    x = run.lift(x)
    if dtype is not None and dtype not in BITS:
        raise Unsupported(f"a ball has no meaning as {dtype}")
    if dtype is None or BITS[dtype] >= BITS[x.dtype]:
        return Ball(run, x.m.clone(), x.r.clone(), dtype or x.dtype, x.least)
    if not run.rounding.declared:
        return Ball(run, x.m.clone(), x.r.clone(), dtype, x.least)
    return run.out(x.m.clone(), x.r.clone(), dtype, least=x.least)


def _to_copy(run: Any, func: Any, x: Any, **given: Any) -> Any:
    dtype = given.get("dtype")
    return cast(run, x, dtype)


def _linear_map(op: Callable[[Tensor], Tensor]) -> Callable[..., Ball]:
    def rule(run: Any, func: Any, x: Any) -> Ball:
        x = run.lift(x)
        return Ball(run, op(x.m), x.r.clone(), x.dtype)

    return rule


def index_add(
    run: Any, func: Any, x: Any, dim: int, *, index: Tensor, source: Any, alpha: Any = 1
) -> Ball:
    """Rows added to where they belong, in any order."""
    x, s, claimed = pair(run, x, source if alpha == 1 else mul(run, source, alpha))
    most = int(torch.bincount(index).max()) if index.numel() else 0
    m = x.m.index_add(dim, index, s.m)
    size = (x.m.abs() + x.r).index_add(dim, index, s.m.abs() + s.r)
    r = x.r.index_add(dim, index, s.r)
    # Each addition is rounded to the dtype of the result.
    return run.out(m, r + gamma(most, run.rounding.unit(claimed)) * size, claimed)


RULES: dict[str, Callable[..., Any]] = {
    "add": _scaled(add),
    "sub": _scaled(sub),
    "rsub": lambda run, func, a, b, **k: _scaled(sub)(run, func, b, a, **k),
    "mul": lambda run, func, a, b: mul(run, a, b),
    "div": _div,
    "reciprocal": lambda run, func, x: div(run, torch.ones((), dtype=x.dtype), x),
    "square": lambda run, func, x: square(run, x),
    "addcmul": _addcmul,
    "sum": _sum,
    "mean": _sum,
    "cumsum": _cumsum,
    "neg": _linear_map(torch.neg),
    "abs": _linear_map(torch.abs),
    "_to_copy": _to_copy,
    "index_add": index_add,
}
