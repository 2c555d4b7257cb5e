"""A float of a program, read back as the number that its author meant.

In order: a short dyadic; a decimal of few digits; a small fraction; a square or fourth
root of one, possibly times log2(e) or ln 2; else a computed constant, which is the same
number as an earlier one that agrees with it to 1e-12.
"""

import math
from bisect import bisect_left, insort
from decimal import Decimal
from fractions import Fraction

import numpy as np

from k3.verify.exact.tower import Tower

NAMED = {"log2(e)": math.log2(math.e), "ln(2)": math.log(2)}
SAME = 1e-12
"""Computed constants this near each other are one number: float64 rounds them."""
TIGHT = 2e-15
SINGLE = 1.5e-7
"""Relative slack of a literal that went through a double, and through a float32."""


def residues(tower: Tower, value: object) -> tuple[int, ...]:
    """The tower value of a constant.

    Infinities and NaN are 0: only their shadow is ever used.
    """
    # Equal numbers of different kinds have one hash: 0.1 is no fraction.
    at = (type(value), value)
    if at not in tower.known:
        tower.known[at] = _residues(tower, value)
    return tower.known[at]


def _residues(tower: Tower, value: object) -> tuple[int, ...]:
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return tower.rational(Fraction(value))
    c = float(value)  # type: ignore[arg-type]
    if not math.isfinite(c) or abs(c) >= 1e30:
        return (0,) * tower.levels
    # A float32 that went through a double means what it meant in 32 bits.
    single = float(np.float32(c)) == c
    exact = dyadic(c)
    if exact is not None:
        return tower.rational(exact)
    simple = rational(c, single)
    if simple is not None:
        tower.readings[c] = str(simple)
        return tower.rational(simple)
    found = root(c, single)
    if found is not None:
        return _of_root(tower, c, *found)
    return _computed(tower, c)


def dyadic(c: float) -> Fraction | None:
    """The value itself, if it has few binary digits."""
    f = Fraction(c)
    odd = abs(f.numerator)
    odd >>= (odd & -odd).bit_length() - 1 if odd else 0
    short = abs(f.numerator) < 1 << 20 and f.denominator <= 1 << 20
    return f if short or odd < 1 << 8 else None


def rational(c: float, single: bool) -> Fraction | None:
    """A decimal of at most 8 digits (6 in fp32), or a fraction of small denominator."""
    d = Decimal(str(np.float32(c))) if single else Decimal(repr(c))
    if len(d.as_tuple().digits) <= (6 if single else 8):
        return Fraction(d)
    f = Fraction(c).limit_denominator(300 if single else 100_000)
    slack = abs(c) * (SINGLE if single else TIGHT)
    return f if f and abs(float(f) - c) <= slack else None


def root(c: float, single: bool) -> tuple[Fraction, int, str] | None:
    """(f, k, name) with |c| = f^(1/k) times a named number, f of small height."""
    slack = SINGLE if single else TIGHT
    for name, factor in {"": 1.0, **({} if single else NAMED)}.items():
        w = abs(c) / factor
        for k in (2,) if single else (1, 2, 4) if name else (2, 4):
            f = _small(w**k, 256 if single else 1 << 16)
            if f is not None and abs(float(f) ** (1 / k) - w) <= slack * w:
                return f, k, name
    return None


def _small(x: float, height: int) -> Fraction | None:
    """The fraction of bounded numerator and denominator nearest to x > 0."""
    if not 0 < x < 1e30:
        return None
    f = Fraction(1 / x if x < 1 else x).limit_denominator(height)
    if not f or max(f.numerator, f.denominator) > height:
        return None
    return 1 / f if x < 1 else f


def _of_root(tower: Tower, c: float, f: Fraction, k: int, name: str) -> tuple[int, ...]:
    v = tower.rational(f) if k == 1 else tower.root(f)
    if k == 4:
        v = tuple(pow(x, (p + 1) // 4, p) for x, p in zip(v, tower.primes, strict=True))
    if name:
        u = tower.oracle_int("ln2", 0)
        at_each = zip(v, u, tower.primes, strict=True)
        v = tuple(
            x * pow(y, -1 if name[0:3] == "log" else 1, p) % p for x, y, p in at_each
        )
    text = {1: f"{f}", 2: f"sqrt({f})", 4: f"root4({f})"}[k]
    tower.readings[c] = f"{'-' if c < 0 else ''}{text}{' ' + name if name else ''}"
    return tuple((-x if c < 0 else x) % p for x, p in zip(v, tower.primes, strict=True))


def _computed(tower: Tower, c: float) -> tuple[int, ...]:
    """An earlier computed constant within `SAME` of c, or c as its binary value."""
    held = tower.computed
    at = bisect_left(held, c)
    for near in held[max(at - 1, 0) : at + 1]:
        if abs(near - c) <= SAME * abs(c):
            return tower.rational(Fraction(near))
    insort(held, c)
    tower.readings[c] = "computed"
    return tower.rational(Fraction(c))
