"""Enclosures contain the value and are narrow; floats are the second opinion."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.logic import interval

NEAR = st.fractions(min_value=-20, max_value=20, max_denominator=99)


def close(found, expected):
    a = interval.enclose(found)
    assert a.low <= a.high
    assert float(a.high - a.low) <= 1e-15 * max(1.0, abs(expected))
    assert math.isclose(float(a.low), expected, rel_tol=1e-12, abs_tol=1e-15)


@settings(deadline=None)
@given(NEAR)
def test_exp(x):
    close(interval.exp(x), math.exp(x))


@settings(deadline=None)
@given(NEAR.filter(lambda x: x > 0))
def test_log_and_sqrt(x):
    close(interval.log(x), math.log(x))
    close(interval.sqrt(x), math.sqrt(x))


def test_exact_values_stay_exact():
    assert interval.exp(Fraction(0)) == 1
    assert interval.log(Fraction(1)) == 0
    assert interval.sqrt(Fraction(9, 4)) == Fraction(3, 2)


@pytest.mark.parametrize(
    "ask", [lambda: interval.log(Fraction(0)), lambda: interval.sqrt(Fraction(-1))]
)
def test_what_is_not_specified_is_undecided(ask):
    with pytest.raises(interval.Undecided):
        ask()


@settings(deadline=None)
@given(NEAR, NEAR)
def test_arithmetic_contains(x, y):
    a, b = interval.enclose(interval.exp(x / 20)), interval.enclose(y)
    for got, want in [
        (a + b, math.exp(x / 20) + y),
        (a - b, math.exp(x / 20) - y),
        (a * b, math.exp(x / 20) * y),
    ]:
        assert float(got.low) - 1e-9 <= want <= float(got.high) + 1e-9
