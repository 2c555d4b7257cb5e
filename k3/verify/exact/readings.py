"""Num as a carrier of spec.ops: importing this module registers it."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from k3.spec import ops
from k3.verify.exact.number import Num, Reference, each, objects


def _real(function: Callable[[float], float]) -> Callable[[float], float]:
    """A shadow never raises: outside its domain it is NaN."""

    def safe(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.nan

    return safe


def _register(name: str, shadow: Callable[[float], float]) -> None:
    safe = _real(shadow)
    getattr(ops, name).register(Num, lambda x: x.opaque(name, safe))


_register("erf", math.erf)
_register("cos", math.cos)
_register("sin", math.sin)
ops.softplus.register(Num, lambda x: ops.log(1 + x.exp()))
ops.exp.register(Num, Num.exp)
ops.lift.register(Num, lambda like, value: like.run.constant(value))
ops.pi.register(Num, lambda like: _pi(like.run))
ops.maximum.register(Num, lambda x, y: x.choose(x.f >= _like(x, y).f, _like(x, y)))
ops.minimum.register(Num, lambda x, y: x.choose(x.f <= _like(x, y).f, _like(x, y)))


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))


@ops.sigmoid.register
def _(x: Num) -> Num:
    y = x.opaque("sigmoid", _logistic)
    if not x.run.tower.theory or x.q is not None:
        return y
    return Num(x.run, (1 / (1 + (-x).exp())).c, y.f)


@ops.tanh.register
def _(x: Num) -> Num:
    y = x.opaque("tanh", math.tanh)
    if not x.run.tower.theory or x.q is not None:
        return y
    e = (x * 2).exp()
    return Num(x.run, ((e - 1) / (e + 1)).c, y.f)


@ops.sqrt.register
def _(x: Num) -> Num:
    y, tower = x.opaque("sqrt", _real(math.sqrt)), x.run.tower
    if not tower.theory or x.q is not None:
        return y
    powers = ((tower.root_power(i), tower.primes[i]) for i in range(x.depth))
    c = [each(partial(_power, e, p), v) for v, (e, p) in zip(x.c, powers, strict=True)]
    return Num(x.run, c, y.f)


def _power(e: int, p: int, v: int) -> int:
    return pow(v, e, p)


@ops.log.register
def _(x: Num) -> Num:
    """A random function with log(1/x) = -log(x)."""
    safe = _real(math.log)
    if x.q is not None:
        return x.opaque("log", safe)
    both = x.opaque("log", safe) - x.inverse().opaque("log", safe)
    return Num(x.run, both.c, both.f / 2)


def _like(x: Num, y: Any) -> Num:
    return y if isinstance(y, Num) else x.run.constant(y)


def _pi(run: Reference) -> Num:
    return Num(run, None, math.pi, objects([math.pi], ()))


@ops.key.register
def _(x: Num) -> float:
    if x.run.order == "shadow":
        return float(x.f)
    return float(x.run.tower.oracle_int("order", int(x.c[0]))[0])


@ops.softmax.register
def _(x: Num) -> Num:
    """Shift invariant also where no level is left for exp."""
    shifted = x - x[..., :1] if x.depth < 2 and x.q is None else x
    e = shifted.exp()
    return e / e.sum(keepdims=True)


@ops.total.register
def _(x: Num, axis: int = -1, keep: bool = False) -> Num:
    return x.sum(axis, keep)


@ops.zeros.register
def _(like: Num, shape: Sequence[int]) -> Num:
    return like.run.constant(np.zeros(tuple(shape), dtype=int))


@ops.matrix.register
def _(like: Num, rows: Sequence[Sequence[Any]]) -> Num:
    return join([join(list(row), _stacked(0)) for row in rows], _stacked(0))


@ops.stack_rule.register
def _(first: Num, items: Sequence[Any], axis: int) -> Num:
    return join([_like(first, x) for x in items], _stacked(axis))


@ops.concat_rule.register
def _(first: Num, items: Sequence[Any], axis: int) -> Num:
    def op(parts: list[Any]) -> Any:
        return np.concatenate(parts, axis)

    return join([_like(first, x) for x in items], op)


def _stacked(axis: int) -> Callable[[list[Any]], Any]:
    return lambda parts: np.stack(parts, axis)


def join(items: list[Num], op: Callable[[list[Any]], Any]) -> Num:
    """Stack or concatenate arrays of values: the depth is the least of theirs."""
    run, f = items[0].run, op([x.f for x in items])
    if all(x.q is not None for x in items):
        return Num(run, None, f, op([x.q for x in items]))
    depth = min(x.depth for x in items)
    return Num(run, [op([x.c[i] for x in items]) for i in range(depth)], f)
