"""Arbs: arrays of real balls of arbitrary precision, a carrier of the spec.

Source: Johansson, Arb: efficient arbitrary-precision midpoint-radius interval
arithmetic, 2017; here through python-flint. Any function of k3.spec runs on it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from k3 import errors
from k3.spec import ops

Floats = NDArray[np.float64]


class Arbs(np.ndarray):
    """An object array of arb whose matrix product is Arb's own.

    A matrix that is used often (a weight) keeps its Arb form in `kept`.
    """

    kept: Any = None
    turned: Any = None

    @property
    def T(self) -> Any:
        """The transpose; that of a kept matrix is kept too."""
        if self.kept is None:
            return self.transpose()
        if self.turned is None:
            self.turned = self.transpose()
            self.turned.kept = self.kept.transpose()
        return self.turned

    def __matmul__(self, other: Any) -> Any:
        return product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return product(other, self)


def flint() -> Any:
    """The library. Raises: RequestError with what to install where it is missing."""
    try:
        import flint as found
    except ImportError as error:
        raise errors.RequestError(
            "enclose computes with Arb: python-flint is not installed; write "
            "pip install 'k3[prove]'"
        ) from error
    register()
    return found


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """So many bits for everything inside."""
    context = flint().ctx
    before, context.prec = context.prec, bits
    try:
        yield
    finally:
        context.prec = before


def arbs(values: Any) -> Arbs:
    """Floats, each exactly as it is."""
    arb, given = flint().arb, np.asarray(values, dtype=float)
    made = np.empty(given.shape, dtype=object)
    made.reshape(-1)[:] = [arb(v) for v in given.reshape(-1).tolist()]
    return made.view(Arbs)


def middle(x: Any) -> Floats:
    """Midpoints as floats."""
    return _each(lambda v: float(v.mid()), x)


def radius(x: Any) -> Floats:
    """Radii as floats."""
    return _each(lambda v: float(v.rad()), x)


def _each(read: Any, x: Any) -> Floats:
    found = np.asarray(x, dtype=object)
    return np.array([read(v) for v in found.flat], dtype=float).reshape(found.shape)


def product(a: Any, b: Any) -> Any:
    """a @ b of vectors and matrices."""
    rows, columns = (a if a.ndim == 2 else a[None]), (b if b.ndim == 2 else b[:, None])
    out = (_matrix(rows, a) * _matrix(columns, b)).entries()
    made = np.empty(len(out), dtype=object)
    made[:] = out
    shape = (rows.shape[:1] if a.ndim == 2 else ()) + (
        columns.shape[1:] if b.ndim == 2 else ()
    )
    return made.reshape(shape).view(Arbs) if shape else made[0]


def _matrix(x: Any, owner: Any) -> Any:
    found = getattr(owner, "kept", None) if x is owner else None
    if found is None:
        found = flint().arb_mat(*x.shape, list(x.reshape(-1)))
    return found


def keep(x: Arbs) -> Arbs:
    """Remember the Arb form of a matrix that is never changed."""
    if x.ndim == 2:
        x.kept = _matrix(x, None)
    return x


class _Middle:
    """What a ball is ordered by: its midpoint, exactly."""

    def __init__(self, value: Any) -> None:
        self.mid = value.mid()

    def __lt__(self, other: "_Middle") -> bool:
        return bool(self.mid < other.mid)


def _stacked(first: Any, items: Sequence[Any], axis: int) -> Any:
    return np.stack([np.asarray(x) for x in items], axis=axis).view(Arbs)


def _scalars(first: Any, items: Sequence[Any], axis: int) -> Any:
    made = np.empty(len(items), dtype=object)
    made[:] = list(items)
    return made.view(Arbs)


@cache
def register() -> None:
    """Make Arb a carrier of spec.ops."""
    from flint import arb, fmpq

    def lifted(like: Any, value: Any) -> Any:
        exact = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
        return arb(fmpq(exact.numerator, exact.denominator))

    for name in ("exp", "log", "sqrt", "tanh", "erf", "cos", "sin"):
        getattr(ops, name).register(arb, getattr(arb, name))
    ops.lift.register(arb, lifted)
    ops.pi.register(arb, lambda like: arb.pi())
    ops.key.register(arb, _Middle)
    ops.stack_rule.register(Arbs, _stacked)
    ops.stack_rule.register(arb, _scalars)
    ops.zeros.register(Arbs, _zeros)


def _zeros(like: Any, shape: Sequence[int]) -> Arbs:
    return arbs(np.zeros(tuple(shape)))
