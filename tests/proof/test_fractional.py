"""Fractional ranks: the logic's estimate is the spec's."""

import random
from fractions import Fraction

import pytest

from k3.logic.falsify import call
from k3.proof import fractional
from k3.spec import balance_histogram as spec


@pytest.mark.parametrize("bins", [1, 3, 8])
def test_the_estimate_is_that_of_the_spec(bins):
    rng = random.Random(bins)
    for _ in range(60):
        counts = [rng.randrange(4) for _ in range(bins)]
        counts[rng.randrange(bins)] += 1
        q = Fraction(rng.randrange(1, 8 * sum(counts) + 1), 8)
        low, width = Fraction(rng.randrange(-9, 9), 4), Fraction(rng.randrange(1, 9), 8)
        at = spec.select(counts, q)
        before = spec.through(counts, at) - counts[at]
        edge = low + at * width
        ours = call(fractional.ESTIMATE, [before, counts[at], q, edge, width])
        assert ours == spec.estimate(counts, q, low, width)
        assert before < q <= before + counts[at]
        assert edge < ours <= edge + width
        share = call(fractional.SHARE, [before, counts[at], q])
        assert call(fractional.CLIPPED, [before, counts[at], q]) == share
