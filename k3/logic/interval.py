"""Exact enclosures of exp, log and sqrt by rational intervals, for counterexamples."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

BITS = 128
FINE = 2 ** (BITS + 64)  # series are summed in integer multiples of 1 / FINE
SLIP = 2**20  # more than all their rounding and remainders, in the same unit


class Undecided(Exception):
    """The enclosures are too wide, or the value is not specified."""


@dataclass(frozen=True, slots=True)
class Interval:
    """All that is known of a real number: low <= it <= high."""

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"{float((self.low + self.high) / 2):.10g}"

    def __add__(self, o: "Number") -> "Interval":
        b = enclose(o)
        return _round(self.low + b.low, self.high + b.high)

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def __sub__(self, o: "Number") -> "Interval":
        return self + -enclose(o)

    def __mul__(self, o: "Number") -> "Interval":
        b = enclose(o)
        ends = [p * q for p in (self.low, self.high) for q in (b.low, b.high)]
        return _round(min(ends), max(ends))

    def __truediv__(self, o: "Number") -> "Interval":
        b = enclose(o)
        if b.low <= 0 <= b.high:
            raise Undecided
        return self * Interval(1 / b.high, 1 / b.low)


Number = Interval | Fraction | int


def enclose(x: Number) -> Interval:
    """A number as an interval."""
    return x if isinstance(x, Interval) else Interval(Fraction(x), Fraction(x))


def _round(low: Fraction, high: Fraction) -> Interval:
    scale = 2**BITS
    return Interval(
        Fraction((low * scale).__floor__(), scale),
        Fraction((high * scale).__ceil__(), scale),
    )


def exp(x: Number) -> Number:
    """An enclosure of e^x."""
    if x == 0:
        return Fraction(1)
    a = enclose(x)
    return Interval(_exp(a.low).low, _exp(a.high).high)


def _exp(x: Fraction) -> Interval:
    if abs(x) > 100:
        raise Undecided
    halvings = max(0, (abs(x).__ceil__() * 4).bit_length())
    y = (x / 2**halvings * FINE).__floor__()  # |y| <= FINE / 4
    total = term = FINE
    for n in range(1, 50):
        term = term * y // (FINE * n)
        total += term
    out = _round(Fraction(total - SLIP, FINE), Fraction(total + SLIP, FINE))
    for _ in range(halvings):
        out = out * out
    return out


def log(x: Number) -> Number:
    """An enclosure of log x for x > 0."""
    if x == 1:
        return Fraction(0)
    a = enclose(x)
    if a.low <= 0:
        raise Undecided
    return Interval(_log(a.low).low, _log(a.high).high)


def _log(x: Fraction) -> Interval:
    power = x.numerator.bit_length() - x.denominator.bit_length()
    return _atanh2(x / Fraction(2) ** power) + _atanh2(Fraction(2)) * power


def _atanh2(m: Fraction) -> Interval:
    """Log m = 2 artanh((m - 1) / (m + 1)) for m in [1/2, 2]."""
    z = ((m - 1) / (m + 1) * FINE).__floor__()  # |z| <= FINE / 3
    square = z * z // FINE
    total, power = 0, z
    for n in range(1, 130, 2):
        total += power // n
        power = power * square // FINE
    return _round(
        Fraction(2 * (total - SLIP), FINE), Fraction(2 * (total + SLIP), FINE)
    )


def sqrt(x: Number) -> Number:
    """An enclosure of the square root of x >= 0."""
    a = enclose(x)
    if a.low < 0:
        raise Undecided
    scale = 4**BITS
    low = isqrt((a.low * scale).__floor__())
    high = isqrt((a.high * scale).__ceil__()) + 1
    if a.low == a.high and Fraction(low, 2**BITS) ** 2 == a.low:
        return Fraction(low, 2**BITS)
    return Interval(Fraction(low, 2**BITS), Fraction(high, 2**BITS))
