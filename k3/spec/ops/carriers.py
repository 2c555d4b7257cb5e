"""Floats, fractions, and numpy arrays of either: the carriers that need no one else."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from k3.spec.ops.operations import (
    Array,
    Number,
    cos,
    erf,
    exp,
    key,
    lift,
    log,
    log_softmax,
    log_softmax_rule,
    matrix,
    maximum,
    minimum,
    pi,
    sigmoid,
    sin,
    softmax,
    softmax_rule,
    softplus,
    sqrt,
    tanh,
    total,
    zeros,
)


def _exact(value: Number) -> Fraction:
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def _entries(op: Callable[..., Array], *arrays: Array) -> Array:
    """A scalar operation on every entry of object arrays."""
    return np.frompyfunc(op, len(arrays), 1)(*arrays)


def _logistic(x: Array) -> Array:
    e = np.exp(-abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _shifted(x: Array) -> Array:
    """Softmax ignores a common shift over the reals; floats overflow without it."""
    return x - x.max(axis=-1, keepdims=True)


def _softmax(x: Array) -> Array:
    if x.dtype == object:
        return softmax_rule(x.flat[0], x)
    e = np.exp(_shifted(x))
    return e / total(e, keep=True)


def _log_softmax(x: Array) -> Array:
    if x.dtype == object:
        return log_softmax_rule(x.flat[0], x)
    y = _shifted(x)
    return y - np.log(total(np.exp(y), keep=True))


def _irrational(name: str, zero: Fraction, value: Fraction) -> Callable[..., Fraction]:
    """A function that is rational at one point only, and says so elsewhere."""

    def at(x: Fraction) -> Fraction:
        if x == zero:
            return value
        raise ArithmeticError(
            f"{name}({x}) is not rational: read this function on floats or balls"
        )

    return at


def _rational_sqrt(x: Fraction) -> Fraction:
    above, below = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if above * above != x.numerator or below * below != x.denominator:
        raise ArithmeticError(
            f"sqrt({x}) is not rational: read this function on floats or balls"
        )
    return Fraction(above, below)


def _on_floats(
    op: Any, scalar: Callable[..., Array], array: Callable[..., Array]
) -> None:
    def arrays(x: Array) -> Array:
        return _entries(op, x) if x.dtype == object else array(x)

    op.register(float, scalar)
    op.register(np.ndarray, arrays)


def _vector_erf(x: Array) -> Array:
    return _entries(math.erf, x).astype(float)


_on_floats(exp, math.exp, np.exp)
_on_floats(log, math.log, np.log)
_on_floats(sqrt, math.sqrt, np.sqrt)
_on_floats(tanh, math.tanh, np.tanh)
_on_floats(erf, math.erf, _vector_erf)
_on_floats(cos, math.cos, np.cos)
_on_floats(sin, math.sin, np.sin)
_on_floats(sigmoid, lambda x: float(_logistic(np.float64(x))), _logistic)
_on_floats(softplus, lambda x: float(_softplus(x)), _softplus)
softmax.register(np.ndarray, _softmax)
log_softmax.register(np.ndarray, _log_softmax)

_RATIONAL_POINTS: tuple[tuple[Any, str, int, int], ...] = (
    (exp, "exp", 0, 1),
    (log, "log", 1, 0),
    (tanh, "tanh", 0, 0),
    (erf, "erf", 0, 0),
    (cos, "cos", 0, 1),
    (sin, "sin", 0, 0),
)
for _op, _name, _at, _value in _RATIONAL_POINTS:
    _op.register(Fraction, _irrational(_name, Fraction(_at), Fraction(_value)))
sqrt.register(Fraction, _rational_sqrt)
pi.register(float, lambda like: math.pi)
lift.register(float, lambda like, value: float(value))
lift.register(int, lambda like, value: _exact(value))
lift.register(Fraction, lambda like, value: _exact(value))
key.register(Fraction, lambda x: x)
key.register(int, lambda x: x)


@pi.register(np.ndarray)
def _(like: Array) -> Array:
    return pi(like.flat[0] if like.dtype == object else 0.0)


@lift.register(np.ndarray)
def _(like: Array, value: Number) -> Array:
    return lift(like.flat[0] if like.dtype == object else 0.0, value)


@zeros.register(float)
def _(like: float, shape: Sequence[int]) -> Array:
    return np.zeros(tuple(shape))


@zeros.register(np.ndarray)
def _(like: Array, shape: Sequence[int]) -> Array:
    return zeros(like.flat[0] if like.dtype == object else 0.0, shape)


@matrix.register(np.ndarray)
def _(like: Array, rows: Sequence[Sequence[Array]]) -> Array:
    if like.dtype != object:
        return np.array(rows, dtype=float)
    return matrix(like.flat[0], rows)


@maximum.register(np.ndarray)
def _(x: Array, y: Array) -> Array:
    return _entries(maximum, x, y) if x.dtype == object else np.maximum(x, y)


@minimum.register(np.ndarray)
def _(x: Array, y: Array) -> Array:
    return _entries(minimum, x, y) if x.dtype == object else np.minimum(x, y)
