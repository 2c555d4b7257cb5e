"""The operations themselves: dispatchers, definitions and array forms."""

from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

# Anything with + - * / @ and indexing; one alias so that signatures stay readable.
Array = Any
Number = int | float | Fraction


def _unknown(name: str, x: Array) -> TypeError:
    return TypeError(
        f"spec.ops.{name} has no reading for {type(x).__name__}: "
        f"register one with spec.ops.{name}.register({type(x).__name__}, ...)"
    )


@singledispatch
def exp(x: Array) -> Array:
    """Exponential, entry by entry."""
    raise _unknown("exp", x)


@singledispatch
def log(x: Array) -> Array:
    """Natural logarithm, entry by entry; x > 0."""
    raise _unknown("log", x)


@singledispatch
def sqrt(x: Array) -> Array:
    """Square root, entry by entry; x >= 0."""
    raise _unknown("sqrt", x)


@singledispatch
def tanh(x: Array) -> Array:
    """Hyperbolic tangent, entry by entry."""
    raise _unknown("tanh", x)


@singledispatch
def erf(x: Array) -> Array:
    """Error function, entry by entry (the projector's exact GELU)."""
    raise _unknown("erf", x)


@singledispatch
def cos(x: Array) -> Array:
    """Cosine, entry by entry (vision positions)."""
    raise _unknown("cos", x)


@singledispatch
def sin(x: Array) -> Array:
    """Sine, entry by entry (vision positions)."""
    raise _unknown("sin", x)


@singledispatch
def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), entry by entry: a definition that a carrier may replace."""
    return 1 / (1 + exp(-x))


@singledispatch
def softplus(x: Array) -> Array:
    """log(1 + exp(x)), entry by entry: a definition that a carrier may replace."""
    return log(1 + exp(x))


@singledispatch
def softmax(x: Array) -> Array:
    """exp(x_j) / sum_i exp(x_i) over the last axis: replaceable, as sigmoid is."""
    e = exp(x)
    return e / total(e, keep=True)


@singledispatch
def log_softmax(x: Array) -> Array:
    """x_j - log sum_i exp(x_i) over the last axis: replaceable, as sigmoid is."""
    return x - log(total(exp(x), keep=True))


@singledispatch
def softmax_rule(entry: Array, x: Array) -> Array:
    """Softmax of an array of objects, dispatched on the type of its entries."""
    e = exp(x)
    return e / total(e, keep=True)


@singledispatch
def log_softmax_rule(entry: Array, x: Array) -> Array:
    """log_softmax of an array of objects, dispatched on the type of its entries."""
    return x - log(total(exp(x), keep=True))


@singledispatch
def maximum(x: Array, y: Array) -> Array:
    """The larger of x and y, entry by entry; y may be a scalar."""
    return y if key(y) > key(x) else x


@singledispatch
def minimum(x: Array, y: Array) -> Array:
    """The smaller of x and y, entry by entry; y may be a scalar."""
    return y if key(y) < key(x) else x


@singledispatch
def pi(like: Array) -> Array:
    """The circle constant on the carrier of `like`."""
    raise _unknown("pi", like)


@singledispatch
def lift(like: Array, value: Number) -> Array:
    """The constant `value` on the carrier of `like`.

    A float literal means the decimal it is written as, so 1e-5 is exactly 1/100000.
    """
    raise _unknown("lift", like)


@singledispatch
def key(x: Array) -> Any:
    """What one scalar is ordered by when the spec must decide (top-k, sorting)."""
    return float(x)


@singledispatch
def total(x: Array, axis: int = -1, keep: bool = False) -> Array:
    """Sum over one axis; `keep` leaves it with length one."""
    return x.sum(axis=axis, keepdims=keep)


@singledispatch
def _stack(first: Array, items: Sequence[Array], axis: int) -> Array:
    return np.stack([np.asarray(item) for item in items], axis=axis)


@singledispatch
def _concat(first: Array, items: Sequence[Array], axis: int) -> Array:
    return np.concatenate(items, axis=axis)


@singledispatch
def zeros(like: Array, shape: Sequence[int]) -> Array:
    """An array of zeros of the carrier of `like`."""
    out = np.empty(tuple(shape), dtype=object)
    out.fill(lift(like, 0))
    return out


@singledispatch
def matrix(like: Array, rows: Sequence[Sequence[Array]]) -> Array:
    """Scalars of the carrier of `like` as an array [rows, columns]."""
    out = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            out[i, j] = entry
    return out


# The array forms that a carrier with arrays of its own (torch) registers for.
stack_rule, concat_rule = _stack, _concat


def stack(items: Sequence[Array], axis: int = 0) -> Array:
    """Items of one shape along a new axis."""
    return _stack(items[0], items, axis)


def concat(items: Sequence[Array], axis: int = 0) -> Array:
    """Items joined along an axis."""
    return _concat(items[0], items, axis)


def reshape(x: Array, *shape: int) -> Array:
    """The same entries in row-major order under another shape."""
    return x.reshape(shape)


def transpose(x: Array) -> Array:
    """A matrix with its axes exchanged."""
    return x.T


def mean(x: Array, axis: int = -1, keep: bool = False) -> Array:
    """Average over one axis."""
    return total(x, axis, keep) / x.shape[axis]


def silu(x: Array) -> Array:
    """Swish: x sigmoid(x), entry by entry."""
    return x * sigmoid(x)


def outer(x: Array, y: Array) -> Array:
    """x y^T, [K] and [V] to [K V]."""
    return x[:, None] * y[None, :]


def order(x: Array) -> list[int]:
    """Indices of a vector from largest to smallest; equal entries, lower index first.

    A vector of integers orders the same way on every carrier. This and comparison are
    the only places where the spec looks at a value to decide what to do next.
    """
    values = [key(x[i]) for i in range(len(x))]
    return sorted(range(len(values)), key=lambda i: values[i], reverse=True)
