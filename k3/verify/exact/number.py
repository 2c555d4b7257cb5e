"""Num: arrays of tower values in Python integers, the second engine.

It shares nothing with ExactTensor but the primes, the hash and the literals' reader, so
the two check each other. `readings` makes it a carrier of spec.ops: any spec function
runs on it. A constant holds fractions (or floats) until it meets a value.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from k3.verify.exact import literal
from k3.verify.exact.tower import Tower

Ints = Any
"""An object array of Python integers."""


@dataclass(slots=True)
class Reference:
    """One run of a reference: its tower, its notes, and how it ranks."""

    tower: Tower
    order: str = "shadow"
    notes: dict[str, int] = field(default_factory=dict)
    seen: list[Ints] | None = None
    """Every residue of level 0 ever computed, where somebody asked for them."""

    def note(self, what: str) -> None:
        """Count something that a reader of the report must know."""
        self.notes[what] = self.notes.get(what, 0) + 1

    def draw(self, name: str, f: Any) -> "Num":
        """The same fresh values that ExactMode.draw gives this name."""
        f = np.asarray(f, dtype=float)
        rows = [self.tower.oracle_int(f"input:{name}", i) for i in range(f.size)]
        return self.wrap(rows, f)

    def wrap(self, rows: Iterable[tuple[int, ...]], f: Any) -> "Num":
        """Values of full depth from one tuple of residues an entry."""
        columns = list(zip(*rows, strict=True)) or [()] * self.tower.levels
        return Num(self, [objects(x, f.shape) for x in columns], f)

    def constant(self, values: Any) -> "Num":
        """Numbers, as the fractions they are or are written as."""
        array = np.asarray(values, dtype=object)
        flat = objects([exactly(v) for v in array.flat], array.shape)
        return Num(self, None, flat.astype(float), flat)


def exactly(value: Any) -> Any:
    """A literal as a fraction: a float means the decimal that it is written as."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    finite = math.isfinite(value)
    return Fraction(str(float(value))) if finite else float(value)


def objects(values: Iterable[Any], shape: tuple[int, ...]) -> Ints:
    """An object array of a shape, never looked into by numpy."""
    flat = list(values)
    out = np.empty(len(flat), dtype=object)
    for i, value in enumerate(flat):
        out[i] = value
    return out.reshape(shape)


class Num:
    """Residues `c` (one object array a level), a float64 shadow `f`, or constants `q`.

    Operators, indexing, `@`, `.T`, `.shape` and `len` are numpy's.
    """

    __slots__ = ("_c", "f", "q", "run")
    __array_ufunc__ = None

    def __init__(
        self, run: Reference, c: list[Ints] | None, f: Any, q: Any = None
    ) -> None:
        self.run, self._c, self.f, self.q = run, c, np.asarray(f, dtype=float), q
        if run.seen is not None and c is not None:
            run.seen.append(c[0])

    @property
    def c(self) -> list[Ints]:
        """Residues; a constant is read first."""
        if self._c is None:
            tower, flat = self.run.tower, np.asarray(self.q, dtype=object)
            rows = [literal.residues(tower, v) for v in flat.flat]
            columns = list(zip(*rows, strict=True)) or [()] * tower.levels
            self._c = [objects(x, flat.shape) for x in columns]
        return self._c

    @property
    def depth(self) -> int:
        """Levels that are valid."""
        return self.run.tower.levels if self._c is None else len(self._c)

    @property
    def shape(self) -> tuple[int, ...]:
        """As numpy's."""
        return self.f.shape

    @property
    def T(self) -> "Num":
        """Axes in reverse."""
        return self._moved(lambda x: x.T)

    def __len__(self) -> int:
        return len(self.f)

    def __getitem__(self, at: Any) -> "Num":
        return self._moved(lambda x: _kept(x[at]))

    def reshape(self, shape: tuple[int, ...]) -> "Num":
        """The same entries under another shape."""
        return self._moved(lambda x: x.reshape(shape))

    def _moved(self, op: Callable[[Any], Any]) -> "Num":
        f = op(self.f)
        if self.q is not None:
            return Num(self.run, None, f, op(self.q))
        assert self._c is not None
        return Num(self.run, [op(x) for x in self._c], f)

    def _like(self, other: Any) -> "Num":
        return other if isinstance(other, Num) else self.run.constant(other)

    def _ring(self, other: Any, op: Callable[[Any, Any], Any]) -> "Num":
        b = self._like(other)
        with np.errstate(all="ignore"):
            f = op(self.f, b.f)
        if self.q is not None and b.q is not None:
            return Num(self.run, None, f, _kept(op(self.q, b.q)))
        primes = self.run.tower.primes
        levels = zip(self.c, b.c, primes, strict=False)
        return Num(self.run, [_kept(op(x, y) % p) for x, y, p in levels], f)

    def __add__(self, other: Any) -> "Num":
        return self._ring(other, lambda x, y: x + y)

    def __sub__(self, other: Any) -> "Num":
        return self._ring(other, lambda x, y: x - y)

    def __mul__(self, other: Any) -> "Num":
        return self._ring(other, lambda x, y: x * y)

    def __matmul__(self, other: Any) -> "Num":
        return self._ring(other, lambda x, y: x @ y)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> "Num":
        return self._like(other) - self

    def __rmatmul__(self, other: Any) -> "Num":
        return self._like(other) @ self

    def __neg__(self) -> "Num":
        return self * -1

    def inverse(self) -> "Num":
        """1 / x, entry by entry."""
        with np.errstate(all="ignore"):
            f = 1 / self.f
        if self.q is not None:
            return Num(self.run, None, f, _kept(each(lambda v: 1 / v, self.q)))
        pairs = zip(self.c, self.run.tower.primes, strict=False)
        c = [each(partial(_power, -1, p), x) for x, p in pairs]
        return Num(self.run, c, f)

    def __truediv__(self, other: Any) -> "Num":
        return self * self._like(other).inverse()

    def __rtruediv__(self, other: Any) -> "Num":
        return self._like(other) * self.inverse()

    def __pow__(self, n: int) -> "Num":
        out = self if n > 0 else self.inverse()
        for _ in range(abs(n) - 1):
            out = out * self
        return out

    def __abs__(self) -> "Num":
        return self.choose(self.f >= 0, -self)

    def choose(self, keep: Any, other: "Num") -> "Num":
        """This value where `keep` holds, else the other."""
        f = np.where(keep, self.f, other.f)
        if self.q is not None and other.q is not None:
            return Num(self.run, None, f, np.where(keep, self.q, other.q))
        pairs = zip(self.c, other.c, strict=False)
        return Num(self.run, [np.where(keep, x, y) for x, y in pairs], f)

    def sum(self, axis: int = -1, keepdims: bool = False) -> "Num":
        """Sum over one axis."""
        f = self.f.sum(axis=axis, keepdims=keepdims)
        if self.q is not None:
            whole = _kept(self.q.sum(axis=axis, keepdims=keepdims))
            return Num(self.run, None, f, whole)
        pairs = zip(self.c, self.run.tower.primes, strict=False)
        c = [_kept(x.sum(axis=axis, keepdims=keepdims) % p) for x, p in pairs]
        return Num(self.run, c, f)

    def opaque(self, tag: str, shadow: Callable[[float], float]) -> "Num":
        """A random function of the value; a constant goes through the real one."""
        f = _floats(shadow, self.f)
        if self.q is not None:
            return Num(self.run, None, f, each(float, f))
        rows = [self.run.tower.oracle_int(tag, v) for v in self.c[0].flat]
        return self.run.wrap(rows, f)

    def exp(self) -> "Num":
        """e^x, one level up."""
        f = _floats(_safe_exp, self.f)
        if self.q is not None:
            return Num(self.run, None, f, each(float, f))
        x, tower = self, self.run.tower
        if x.depth < 2:
            self.run.note("exp of a value without levels left: uninterpreted here")
            x = self.opaque("reseed", lambda v: v)
        c = [
            each(partial(pow, tower.base[i], mod=tower.primes[i]), x.c[i + 1])
            for i in range(x.depth - 1)
        ]
        return Num(self.run, c, f)

    def __float__(self) -> float:
        return float(self.f)

    def __repr__(self) -> str:
        return f"Num(shape={self.shape}, about {self.f.flat[:4]})"


def _power(e: int, p: int, x: int) -> int:
    return pow(x, e, p)


def _kept(x: Any) -> Ints:
    """An entry that numpy unpacked, back in an array without axes."""
    return x if isinstance(x, np.ndarray) else np.asarray(x, dtype=object)


def each(op: Callable[[Any], Any], x: Any) -> Ints:
    """A function of every entry, as an object array."""
    return _kept(np.frompyfunc(op, 1, 1)(np.asarray(x, dtype=object)))


def _floats(op: Callable[[float], float], x: Any) -> Any:
    return np.array([op(v) for v in x.flat], dtype=float).reshape(x.shape)


def _safe_exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf
