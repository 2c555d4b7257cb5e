"""Choices: the machine's are followed, and compared with what the balls allow."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.enclose.ball import Ball, Unsupported
from k3.verify.enclose.choices import COMPARES, order_of, ranked
from k3.verify.enclose.rules.ring import pair


def _topk(
    run: Any,
    func: Any,
    x: Any,
    k: int,
    *,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[Ball, Tensor]:
    x = run.lift(x)
    if not largest or dim % x.dim() != x.dim() - 1:
        raise Unsupported(f"{func}: balls rank the last axis, largest first")
    machine = run.choices.next("topk")
    index = None if machine is None else machine[1]
    return _ranked(run, x, k, index)


def _sort(
    run: Any, func: Any, x: Any, dim: int = -1, **given: Any
) -> tuple[Ball, Tensor]:
    x = run.lift(x)
    if not given.get("descending") or dim % x.dim() != x.dim() - 1:
        raise Unsupported(f"{func}: balls rank the last axis, largest first")
    machine = run.choices.next("sort")
    return _ranked(run, x, x.shape[-1], None if machine is None else machine[1])


def _ranked(run: Any, x: Ball, k: int, index: Tensor | None) -> tuple[Ball, Tensor]:
    width = x.shape[-1]
    m, r = x.m.reshape(-1, width), x.r.reshape(-1, width)
    if index is None:
        order = m.sort(dim=-1, descending=True, stable=True).indices
    else:
        order = order_of(m, index.reshape(-1, k))
    run.choices.routes.append(ranked(m, r, order, min(k, width)))
    index = order[:, :k].reshape(*x.shape[:-1], k).contiguous()
    return Ball(run, x.m.gather(-1, index), x.r.gather(-1, index), x.dtype), index


def _compare(name: str) -> Callable[..., Any]:
    op = getattr(torch, name)

    def rule(run: Any, func: Any, a: Any, b: Any) -> Tensor:
        x, y, _ = pair(run, a, b)
        machine = run.choices.next(name)
        gap, loose = x.m - y.m, x.r + y.r
        zero = torch.zeros_like(gap)
        found = op(torch.where(gap.isnan(), zero, gap), zero)
        unclear = (gap.abs() <= loose) & (loose > 0)
        run.choices.open += int(unclear.sum())
        if machine is None:
            return found
        wrong = int(((machine != found) & ~unclear).sum())
        if wrong:
            run.choices.impossible.append(f"{name}: {wrong} comparisons the other way")
        return machine

    return rule


def _argmax(run: Any, func: Any, x: Any, dim: Any = None, keepdim: Any = False) -> Any:
    machine = run.choices.next(func._schema.name.split("::")[1])
    return func(run.lift(x).m, dim, keepdim) if machine is None else machine


def _finite(name: str) -> Callable[..., Tensor]:
    def rule(run: Any, func: Any, x: Any) -> Tensor:
        machine = run.choices.next(name)
        return getattr(torch, name)(run.lift(x).m) if machine is None else machine

    return rule


def _extreme(
    run: Any, func: Any, x: Any, dim: Any = None, *, keepdim: bool = False
) -> Ball:
    """amax and amin: they move by no more than the largest radius."""
    name = func._schema.name.split("::")[1]
    if name in ("max", "min") and dim is not None:
        raise Unsupported(f"{func}: balls have amax and amin, without an index")
    x = run.lift(x)
    dims = list(range(x.dim())) if dim is None or dim == [] else dim
    m = x.m.amax(dims, keepdim) if "max" in name else x.m.amin(dims, keepdim)
    return Ball(run, m, x.r.amax(dims, keepdim), x.dtype, x.least)


def _where(run: Any, func: Any, condition: Tensor, a: Any, *, other: Any) -> Ball:
    x, y, claimed = pair(run, a, other)
    m, r = torch.where(condition, x.m, y.m), torch.where(condition, x.r, y.r)
    return Ball(run, m, r, claimed, min(x.least, y.least))


def _masked_fill(run: Any, func: Any, x: Any, mask: Tensor, *, value: Any) -> Ball:
    x = run.lift(x)
    v = run.lift(value) if isinstance(value, Tensor) else run.scalar(value, x.dtype)
    m, r = torch.where(mask, v.m, x.m), torch.where(mask, v.r, x.r)
    return Ball(run, m, r, x.dtype)


def _pad(run: Any, func: Any, x: Any, pad: Any, *, value: Any = 0) -> Ball:
    x, v = run.lift(x), run.scalar(value, x.dtype)
    m = torch.constant_pad_nd(x.m, pad, float(v.m))
    return Ball(run, m, torch.constant_pad_nd(x.r, pad, float(v.r)), x.dtype)


def _clamp(run: Any, func: Any, x: Any, low: Any = None, **given: Any) -> Ball:
    """Clamping brings values no further apart."""
    x, low, high = run.lift(x), given.get("min", low), given.get("max")
    if func._schema.name.endswith("clamp_max"):
        low, high = None, low
    least = -math.inf if low is None else float(low)
    return Ball(run, x.m.clamp(low, high), x.r.clone(), x.dtype, least)


def _fill(run: Any, func: Any, x: Any, value: Any = 0.0) -> Ball:
    v = run.scalar(float(value), x.dtype)
    return Ball(run, torch.full_like(x.m, float(v.m)), torch.zeros_like(x.r), x.dtype)


RULES: dict[str, Callable[..., Any]] = {
    **{name: _compare(name) for name in COMPARES},
    **{name: _finite(name) for name in ("isnan", "isinf", "isfinite")},
    **dict.fromkeys(("argmax", "argmin"), _argmax),
    **dict.fromkeys(("amax", "amin", "max", "min"), _extreme),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamp),
    "topk": _topk,
    "sort": _sort,
    "where": _where,
    "masked_fill": _masked_fill,
    "constant_pad_nd": _pad,
    "fill": _fill,
    "zero": _fill,
    "_local_scalar_dense": lambda run, func, x: float(x.m),
}
