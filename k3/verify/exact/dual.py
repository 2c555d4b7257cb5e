"""Dual numbers over Num: a value and its derivative in one direction.

Forward mode on Python integers, so the gradients that autograd computes backward on the
first engine are held against derivatives that share nothing with them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from k3.spec import ops
from k3.verify.exact.number import Num, Reference


class Dual:
    """x + d e with e^2 = 0; operators and indexing as numpy's."""

    __slots__ = ("d", "x")
    __array_ufunc__ = None

    def __init__(self, x: Num, d: Num) -> None:
        self.x, self.d = x, d

    @property
    def run(self) -> Reference:
        """The run that the value belongs to."""
        return self.x.run

    @property
    def shape(self) -> tuple[int, ...]:
        """As numpy's."""
        return self.x.shape

    @property
    def T(self) -> "Dual":
        """Axes in reverse."""
        return Dual(self.x.T, self.d.T)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, at: Any) -> "Dual":
        return Dual(self.x[at], self.d[at])

    def reshape(self, shape: tuple[int, ...]) -> "Dual":
        """The same entries under another shape."""
        return Dual(self.x.reshape(shape), self.d.reshape(shape))

    def like(self, other: Any) -> "Dual":
        """Another value, with derivative 0 where it has none."""
        if isinstance(other, Dual):
            return other
        x = other if isinstance(other, Num) else self.run.constant(other)
        return Dual(x, self.run.constant(np.zeros(x.shape, dtype=int)))

    def __add__(self, other: Any) -> "Dual":
        b = self.like(other)
        return Dual(self.x + b.x, self.d + b.d)

    def __sub__(self, other: Any) -> "Dual":
        b = self.like(other)
        return Dual(self.x - b.x, self.d - b.d)

    def __mul__(self, other: Any) -> "Dual":
        b = self.like(other)
        return Dual(self.x * b.x, self.x * b.d + self.d * b.x)

    def __matmul__(self, other: Any) -> "Dual":
        b = self.like(other)
        return Dual(self.x @ b.x, self.x @ b.d + self.d @ b.x)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> "Dual":
        return self.like(other) - self

    def __rmatmul__(self, other: Any) -> "Dual":
        return self.like(other) @ self

    def __neg__(self) -> "Dual":
        return Dual(-self.x, -self.d)

    def inverse(self) -> "Dual":
        """1 / x."""
        y = self.x.inverse()
        return Dual(y, -(y * y * self.d))

    def __truediv__(self, other: Any) -> "Dual":
        return self * self.like(other).inverse()

    def __rtruediv__(self, other: Any) -> "Dual":
        return self.like(other) * self.inverse()

    def sum(self, axis: int = -1, keepdims: bool = False) -> "Dual":
        """Sum over one axis."""
        return Dual(self.x.sum(axis, keepdims), self.d.sum(axis, keepdims))

    def chain(self, y: Num, slope: Num) -> "Dual":
        """A function's value, with its slope times this derivative."""
        return Dual(y, slope * self.d)


def _chained(name: str, slope: Callable[[Num, Num], Num]) -> None:
    function = getattr(ops, name)

    def reading(v: Dual) -> Dual:
        y = function(v.x)
        return v.chain(y, slope(v.x, y))

    function.register(Dual, reading)


_chained("exp", lambda x, y: y)
_chained("log", lambda x, y: x.inverse())
_chained("sqrt", lambda x, y: (y * 2).inverse())
_chained("tanh", lambda x, y: 1 - y * y)
_chained("sigmoid", lambda x, y: y * (1 - y))
_chained("softplus", lambda x, y: ops.sigmoid(x))
_chained("sin", lambda x, y: ops.cos(x))
_chained("cos", lambda x, y: -ops.sin(x))
_chained("erf", lambda x, y: (x * x * -1).exp() * 2 / ops.sqrt(ops.pi(x)))
ops.lift.register(Dual, lambda like, value: like.like(like.run.constant(value)))
ops.pi.register(Dual, lambda like: like.like(ops.pi(like.x)))
ops.key.register(Dual, lambda v: ops.key(v.x))
ops.zeros.register(Dual, lambda like, shape: like.like(ops.zeros(like.x, shape)))


@ops.softmax.register
def _(v: Dual) -> Dual:
    y = ops.softmax(v.x)
    return Dual(y, y * (v.d - (y * v.d).sum(keepdims=True)))


@ops.total.register
def _(v: Dual, axis: int = -1, keep: bool = False) -> Dual:
    return v.sum(axis, keep)


@ops.stack_rule.register
def _(first: Dual, items: Sequence[Any], axis: int) -> Dual:
    both = [first.like(v) for v in items]
    x, d = ([getattr(v, part) for v in both] for part in ("x", "d"))
    return Dual(ops.stack(x, axis), ops.stack(d, axis))


@ops.concat_rule.register
def _(first: Dual, items: Sequence[Any], axis: int) -> Dual:
    both = [first.like(v) for v in items]
    x, d = ([getattr(v, part) for v in both] for part in ("x", "d"))
    return Dual(ops.concat(x, axis), ops.concat(d, axis))


@ops.matrix.register
def _(like: Dual, rows: Sequence[Sequence[Any]]) -> Dual:
    return ops.stack([ops.stack([like.like(v) for v in row]) for row in rows])
