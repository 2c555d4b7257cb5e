"""Softmax and normalized weights: the logic's functions are the spec's."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic import interval
from k3.logic.falsify import call
from k3.proof import mixture, probability
from k3.spec import norm, ops

SIZES = [1, 3, 8]


def numbers(size, low):
    rng = random.Random(size)
    return [Fraction(rng.randrange(low, 13), rng.randrange(1, 5)) for _ in range(size)]


def middle(value):
    found = interval.enclose(value)
    return float((found.low + found.high) / 2)


@pytest.mark.parametrize("size", SIZES)
def test_softmax_is_that_of_the_spec(size):
    scores = numbers(size, -12)
    ours = call(probability.SOFTMAX, [tuple(scores)])
    spec = ops.softmax(np.array([float(s) for s in scores]))
    np.testing.assert_allclose([middle(w) for w in ours], spec, rtol=1e-14)
    assert sum(spec) == pytest.approx(1, abs=1e-14)
    assert all(0 < w <= 1 for w in spec)
    moved = ops.softmax(np.array([float(s + Fraction(7, 3)) for s in scores]))
    np.testing.assert_allclose(moved, spec, rtol=1e-13)


@pytest.mark.parametrize("size", SIZES)
def test_normalized_weights_are_those_of_the_spec(size):
    weights = numbers(size, 1)
    ours = call(mixture.NORMALIZED, [tuple(weights)])
    spec = norm.probabilities(np.array(weights, dtype=object))
    assert list(ours) == list(spec)
    assert sum(spec) == 1
    assert all(0 < w <= 1 for w in spec)
    assert call(probability.SUM_ALL, [ours]) == 1
