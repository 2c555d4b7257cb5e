"""Choices: order, masks, maxima. The shadow decides them, or a hash of the value."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact import nested
from k3.verify.exact.move import result_dtype
from k3.verify.exact.rules.ring import each, negative
from k3.verify.exact.tensor import (
    ExactTensor,
    is_exact,
    log_parts,
    make,
    make_log,
    words,
)


def where(run: Any, condition: Tensor, a: Any, b: Any) -> ExactTensor:
    """a where the condition holds, else b."""
    claimed = result_dtype(*(x for x in (b, a) if isinstance(x, Tensor)))
    x, y = run.lift(a), run.lift(b)
    c = [torch.where(condition, p, q) for p, q in zip(x.c, y.c, strict=False)]
    out = make(run, torch.where(condition, x.f, y.f), c, claimed)
    if x.logarithm or y.logarithm:
        plain, factor = (
            [torch.where(condition, p, q) for p, q in zip(a, b, strict=False)]
            for a, b in zip(log_parts(x), log_parts(y), strict=True)
        )
        return make_log(out, plain, factor)
    return out


def pick(run: Any, x: ExactTensor, index: Tensor, dim: int) -> ExactTensor:
    """Gather along an axis."""
    f = x.f.gather(dim, index)
    return make(run, f, [p.gather(dim, index) for p in x.c], x.dtype)


def rank(run: Any, x: ExactTensor) -> Tensor:
    """What x is ordered by."""
    if run.order == "shadow":
        return x.f
    return run.tower.oracle("order", x.c[0])[0].double()


def _topk(
    run: Any,
    func: Any,
    x: ExactTensor,
    k: int,
    *,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[ExactTensor, Tensor]:
    f = rank(run, x)
    s, index = f.sort(dim=dim, descending=largest, stable=True)
    if run.order == "shadow" and k < x.shape[dim]:
        run.decide(s.select(dim, k - 1) - s.select(dim, k))
    index = index.narrow(dim, 0, k).contiguous()
    return pick(run, x, index, dim), index


def _sort(
    run: Any,
    func: Any,
    x: ExactTensor,
    dim: int = -1,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> tuple[ExactTensor, Tensor]:
    s, index = rank(run, x).sort(dim=dim, descending=descending, stable=True)
    if run.order == "shadow":
        run.decide(s.diff(dim=dim))
    return pick(run, x, index, dim), index


def _argsort(run: Any, func: Any, *a: Any, **k: Any) -> Tensor:
    return _sort(run, func, *a, **k)[1]


def _extreme(
    run: Any, func: Any, x: ExactTensor, dim: Any = None, *, keepdim: bool = False
) -> Any:
    name = func._schema.name.split("::")[1]
    if isinstance(dim, Tensor):
        return _larger(run, func, x, dim)
    f = x.f if "max" in name else -x.f
    if dim is None or dim == []:
        at = f.flatten().argmax()
        return make(run, x.f.flatten()[at], [p.flatten()[at] for p in x.c], x.dtype)
    axis = dim[0] if isinstance(dim, list | tuple) else dim
    index = f.argmax(axis, keepdim=True)
    out = pick(run, x, index, axis)
    if not keepdim:
        out = each(run, out, out.f.squeeze(axis), lambda _, p: p.squeeze(axis))
        index = index.squeeze(axis)
    return out if name.startswith("a") else (out, index)


def _larger(run: Any, func: Any, a: Any, b: Any) -> ExactTensor:
    keep = run.lift(a).f >= run.lift(b).f
    return where(run, keep, a, b)


def _smaller(run: Any, func: Any, a: Any, b: Any) -> ExactTensor:
    return where(run, run.lift(a).f <= run.lift(b).f, a, b)


def _clamp(run: Any, func: Any, x: Any, low: Any = None, **given: Any) -> ExactTensor:
    low, high = given.get("min", low), given.get("max")
    if func._schema.name.split("::")[1].startswith("clamp_max"):
        low, high = None, low
    if low is not None:
        x = where(run, x.f < run.lift(low).f, low, x)
    if high is not None:
        x = where(run, x.f > run.lift(high).f, high, x)
    return x


def _where(
    run: Any, func: Any, condition: Tensor, a: Any, *, other: Any
) -> ExactTensor:
    return where(run, condition, a, other)


def _masked_fill(
    run: Any, func: Any, x: Any, mask: Tensor, *, value: Any
) -> ExactTensor:
    return where(run, mask, value if isinstance(value, Tensor) else float(value), x)


def _all_of(run: Any, x: ExactTensor, value: Any) -> ExactTensor:
    out = where(run, torch.ones(x.shape, dtype=torch.bool), value, x)
    return make(run, out.f, out.c, x.dtype)


def _pad(
    run: Any, func: Any, x: ExactTensor, pad: Any, *, value: Any = 0
) -> ExactTensor:
    inside = torch.ones(x.shape, dtype=torch.bool)
    mask = torch.nn.functional.pad(inside, pad, value=False)
    f = torch.constant_pad_nd(x.f, pad)
    grown = each(run, x, f, lambda _, p: torch.constant_pad_nd(p, pad))
    return grown if value == 0 else where(run, mask, grown, float(value))


def _by_shadow(name: str) -> Callable[..., Any]:
    """A test whose answer is a plain tensor or number."""

    def rule(run: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        run.note(f"{name} decided by the shadow")

        def pick(x: Any) -> Any:
            return x.f if is_exact(x) else x

        return func(*nested.mapped(pick, args), **nested.mapped(pick, kwargs))

    return rule


TESTS = words(
    """
    gt lt ge le eq ne isnan isinf isfinite argmax argmin nonzero any all sign
    _local_scalar_dense equal is_nonzero floor round isneginf signbit
    logical_not
    """
)
RULES: dict[str, Callable[..., Any]] = {
    **{name: _by_shadow(name) for name in TESTS},
    "topk": _topk,
    "sort": _sort,
    "argsort": _argsort,
    **dict.fromkeys(("amax", "amin", "max", "min"), _extreme),
    "maximum": _larger,
    "minimum": _smaller,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "where": _where,
    "masked_fill": _masked_fill,
    "relu": lambda run, func, x: where(run, x.f > 0, x, 0.0),
    "abs": lambda run, func, x: where(run, x.f < 0, negative(run, x), x),
    "fill": lambda run, func, x, v: _all_of(run, x, v),
    "zero": lambda run, func, x: _all_of(run, x, 0.0),
    "constant_pad_nd": _pad,
}
