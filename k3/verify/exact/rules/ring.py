"""Ring operations, sums and division, level by level."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact.move import result_dtype
from k3.verify.exact.tensor import ExactTensor, Unsupported, log_parts, make, make_log


def binary(run: Any, op: str, a: Any, b: Any) -> ExactTensor:
    """A field operation and the torch function of the same name on shadows."""
    claimed = result_dtype(a, b)
    x, y = run.lift(a), run.lift(b)
    levels = zip(run.tower.fields, x.c, y.c, strict=False)
    c = [getattr(field, op)(p, q) for field, p, q in levels]
    out = make(run, getattr(torch, op)(x.f, y.f), c, claimed)
    if op != "mul" and (x.logarithm or y.logarithm):
        return _of_logs(run, op, x, y, out)
    return out


def _of_logs(
    run: Any, op: str, x: ExactTensor, y: ExactTensor, out: ExactTensor
) -> ExactTensor:
    """(a + log b) +- (c + log d): sums of a and c, products or quotients of b, d."""
    (a, b), (c, d) = log_parts(x), log_parts(y)
    levels = list(zip(run.tower.fields, a, c, b, d, strict=False))
    plain = [getattr(fl, op)(p, q) for fl, p, q, _, _ in levels]
    below = [q if op == "add" else fl.inv(q) for fl, _, _, _, q in levels]
    factor = [fl.mul(p, q) for (fl, _, _, p, _), q in zip(levels, below, strict=True)]
    shape = out.shape
    return make_log(out, [p.expand(shape) for p in plain], factor)


def add(run: Any, a: Any, b: Any) -> ExactTensor:
    """a + b."""
    return binary(run, "add", a, b)


def sub(run: Any, a: Any, b: Any) -> ExactTensor:
    """a - b."""
    return binary(run, "sub", a, b)


def mul(run: Any, a: Any, b: Any) -> ExactTensor:
    """a b."""
    return binary(run, "mul", a, b)


def each(
    run: Any,
    x: ExactTensor,
    f: Tensor,
    op: Callable[[Any, Tensor], Tensor],
    dtype: torch.dtype | None = None,
) -> ExactTensor:
    """A new shadow, and op(field, residues) on every level."""
    c = [op(field, p) for field, p in zip(run.tower.fields, x.c, strict=False)]
    return make(run, f, c, dtype or x.dtype)


def reciprocal(run: Any, x: ExactTensor) -> ExactTensor:
    """1 / x; a residue that is 0 by chance is noted."""
    if x.c and bool((x.c[0] == 0).any()):
        run.note("division by a zero residue: run another seed")
    return each(run, x, 1 / x.f, lambda field, p: field.inv(p))


def negative(run: Any, x: ExactTensor) -> ExactTensor:
    """-x."""
    if x.logarithm:
        return binary(run, "sub", torch.zeros(x.shape, dtype=x.dtype), x)
    return each(run, x, -x.f, lambda field, p: field.neg(p))


def divide(run: Any, a: Any, b: Any) -> ExactTensor:
    """a / b."""
    top, below = run.lift(a), run.lift(b)
    out = mul(run, top, reciprocal(run, below))
    f = top.f / below.f
    return make(run, f, out.c, result_dtype(a, b))


def integer_power(run: Any, x: ExactTensor, n: int) -> ExactTensor:
    """x^n for an integer n."""
    y = x if n >= 0 else reciprocal(run, x)
    return each(run, y, x.f**n, lambda field, p: field.pow(p, abs(n)))


def total(
    run: Any,
    x: ExactTensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> ExactTensor:
    """Sum over axes, all of them by default."""
    dims = _axes(x, dim)
    if not dims:
        return x
    f = x.f.sum(dims, keepdim)
    return each(run, x, f, lambda field, p: field.sum(p, dims, keepdim), dtype)


def _axes(x: Tensor, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return list(dim) if isinstance(dim, list | tuple) else [dim]


def _add(run: Any, func: Any, a: Any, b: Any, alpha: Any = 1) -> ExactTensor:
    return add(run, a, b if alpha == 1 else mul(run, b, alpha))


def _sub(run: Any, func: Any, a: Any, b: Any, alpha: Any = 1) -> ExactTensor:
    return sub(run, a, b if alpha == 1 else mul(run, b, alpha))


def _rsub(run: Any, func: Any, a: Any, b: Any, alpha: Any = 1) -> ExactTensor:
    return _sub(run, func, b, a, alpha)


def _mul(run: Any, func: Any, a: Any, b: Any) -> ExactTensor:
    return mul(run, a, b)


def _div(run: Any, func: Any, a: Any, b: Any, rounding_mode: Any = None) -> ExactTensor:
    if rounding_mode:
        raise Unsupported(f"{func} rounds an exact value: it has no exact meaning")
    return divide(run, a, b)


def _mean(
    run: Any,
    func: Any,
    x: ExactTensor,
    dim: Any = None,
    keepdim: bool = False,
    **k: Any,
) -> ExactTensor:
    n = math.prod(x.shape[d] for d in _axes(x, dim))
    return divide(run, total(run, x, dim, keepdim, k.get("dtype")), n)


def _cumsum(
    run: Any, func: Any, x: ExactTensor, dim: int, dtype: Any = None
) -> ExactTensor:
    f = x.f.cumsum(dim)
    return each(run, x, f, lambda field, p: field.cumsum(p, dim), dtype)


def _cumprod(
    run: Any, func: Any, x: ExactTensor, dim: int, dtype: Any = None
) -> ExactTensor:
    f = x.f.cumprod(dim)
    return each(run, x, f, lambda field, p: field.cumprod(p, dim), dtype)


def _addcmul(
    run: Any, func: Any, s: Any, tensor1: Any, *, tensor2: Any, value: Any = 1
) -> ExactTensor:
    product = mul(run, tensor1, tensor2)
    return add(run, s, product if value == 1 else mul(run, product, value))


def _addcdiv(
    run: Any, func: Any, s: Any, tensor1: Any, *, tensor2: Any, value: Any = 1
) -> ExactTensor:
    quotient = divide(run, tensor1, tensor2)
    return add(run, s, quotient if value == 1 else mul(run, quotient, value))


def _lerp(run: Any, func: Any, a: Any, b: Any, weight: Any) -> ExactTensor:
    return add(run, a, mul(run, weight, sub(run, b, a)))


def _cast(
    run: Any, func: Any, x: ExactTensor, dtype: Any = None, **_: Any
) -> Tensor | ExactTensor:
    """A cast is the identity on real numbers."""
    if dtype is not None and not dtype.is_floating_point:
        run.note("an exact value became an integer through its shadow")
        return x.f.to(dtype)
    return each(run, x, x.f.clone(), lambda field, p: p.clone(), dtype)


def _index_add(
    run: Any, func: Any, x: Any, dim: int, *, index: Tensor, source: Any, alpha: Any = 1
) -> ExactTensor:
    x, src = run.lift(x), run.lift(source)
    src = src if alpha == 1 else mul(run, src, alpha)
    levels = zip(run.tower.fields, x.c, src.c, strict=False)
    c = [field.index_add(p, dim, index, q) for field, p, q in levels]
    return make(run, x.f.index_add(dim, index, src.f), c, x.dtype)


def _scatter_add(
    run: Any, func: Any, x: Any, dim: int, *, index: Tensor, src: Any
) -> ExactTensor:
    x, src = run.lift(x), run.lift(src)
    levels = zip(run.tower.fields, x.c, src.c, strict=False)
    c = [field.scatter_add(p, dim, index, q) for field, p, q in levels]
    return make(run, x.f.scatter_add(dim, index, src.f), c, x.dtype)


def _index_put(
    run: Any,
    func: Any,
    x: Any,
    indices: Any,
    *,
    values: Any,
    accumulate: bool = False,
    unsafe: bool = False,
) -> ExactTensor:
    x, src = run.lift(x), run.lift(values)
    levels = zip(run.tower.fields, x.c, src.c, strict=False)
    c = [
        field.index_put(p, indices, q) if accumulate else p.index_put(indices, q)
        for field, p, q in levels
    ]
    return make(run, x.f.index_put(indices, src.f, accumulate), c, x.dtype)


RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "mul": _mul,
    "multiply": _mul,
    "div": _div,
    "true_divide": _div,
    "neg": lambda run, func, x: negative(run, x),
    "reciprocal": lambda run, func, x: reciprocal(run, x),
    "square": lambda run, func, x: mul(run, x, x),
    "sum": lambda run, func, x, *a, **k: total(run, x, *a, **k),
    "mean": _mean,
    "cumsum": _cumsum,
    "cumprod": _cumprod,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "_to_copy": _cast,
    "to": _cast,
    "index_add": _index_add,
    "scatter_add": _scatter_add,
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "dot": lambda run, func, a, b: total(run, mul(run, a, b), [0]),
}
