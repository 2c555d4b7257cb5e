"""Literals are read as what their author meant."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from k3.verify.exact import literal
from k3.verify.exact.tower import Tower


@pytest.fixture
def tower():
    return Tower(50, 3, 0)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (1e-5, Fraction(1, 100_000)),
        (float(np.float32(1e-5)), Fraction(1, 100_000)),
        (1.0000001e-5, Fraction(10000001, 10**12)),
        (0.044715, Fraction(44715, 10**6)),
        (1 / 3, Fraction(1, 3)),
        (2.0**-23, Fraction(1, 2**23)),
        (6 * 2.0**-40, Fraction(6, 2**40)),
        (-5.0, Fraction(-5)),
    ],
)
def test_rational_literals(tower, value, meant):
    assert literal.residues(tower, value) == tower.rational(meant)


def test_roots_and_named_numbers(tower):
    def of(value):
        return literal.residues(tower, value)

    p = tower.primes
    squared = [x * x % q for x, q in zip(of(192**-0.5), p, strict=True)]
    assert squared == list(tower.rational(Fraction(1, 192)))
    product = [
        x * y % q
        for x, y, q in zip(of(math.log2(math.e)), of(math.log(2)), p, strict=True)
    ]
    assert product == [1, 1, 1]
    assert tower.readings[192**-0.5] == "sqrt(1/192)"


def test_computed_constants_are_one_within_rounding(tower):
    c = math.cos(0.3)
    assert literal.residues(tower, c) == literal.residues(tower, c * (1 + 3e-16))
    assert literal.residues(tower, c) != literal.residues(tower, c * (1 + 1e-11))
    assert tower.readings[c] == "computed"


def test_masks_have_no_residue(tower):
    assert literal.residues(tower, -math.inf) == (0, 0, 0)


def test_random_numbers_are_not_read_as_something_else(tower):
    rng = random.Random(0)
    for _ in range(2000):
        literal.residues(tower, rng.uniform(0, 3))
    assert set(tower.readings.values()) == {"computed"}
