"""Selected bins: the bin in which counts reach a rank, counted in plain Python."""

import random
from fractions import Fraction

import pytest

from k3.logic.falsify import call
from k3.proof import bins


@pytest.mark.parametrize("size", [1, 3, 8])
def test_the_bin_in_which_the_counts_reach_the_rank_is_not_empty(size):
    rng = random.Random(size)
    for _ in range(20):
        counts = [rng.choice([0, 0, 2, 5]) for _ in range(size)]
        counts[rng.randrange(size)] += 1
        rank = Fraction(rng.randint(1, 2 * sum(counts)), 2)

        def through(b):
            return call(bins.SUM, [lambda i: Fraction(counts[i]), b])  # noqa: B023

        assert [through(b) for b in range(size + 1)] == [
            sum(counts[:b]) for b in range(size + 1)
        ]
        chosen = [b for b in range(size) if through(b) < rank <= through(b + 1)]
        assert len(chosen) == 1
        assert counts[chosen[0]] > 0
