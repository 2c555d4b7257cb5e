"""Budget and verbosity rules: the logic's functions are the spec's, and obey them."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic.falsify import call
from k3.proof import budget
from k3.spec import rl


def rewards(size, seed):
    rng = random.Random(seed)
    for _ in range(size):
        value = Fraction(rng.randrange(-8, 9), 8)
        used, limit = rng.randrange(0, 40), rng.randrange(0, 20)
        yield value, used, limit, Fraction(rng.randrange(0, 9), 4)


@pytest.mark.parametrize("size", [5, 50, 500])
def test_the_budget_rule_is_that_of_the_spec(size):
    for value, used, limit, factor in rewards(size, size):
        ours = call(budget.BUDGETED, [value, Fraction(used), limit, factor])
        spec = rl.budgeted(np.array(value, dtype=object), used, limit, factor)
        assert ours == spec
        past = used > factor * limit
        assert (ours == -1) == (past or value == -1)
        assert -1 <= ours <= 1
        assert call(budget.BUDGETED, [ours, Fraction(used), limit, factor]) == ours


@pytest.mark.parametrize("size", [5, 50, 500])
def test_the_verbosity_rule_is_that_of_the_spec(size):
    rng = random.Random(size)
    for _, length, baseline, factor in rewards(size, size):
        judged = rng.choice(["first", "second", "tie"])
        ours = call(budget.RULED, [judged, "second", length, baseline, factor])
        assert ours == rl.verdict(judged, length, baseline, factor)
        if ours == "first":
            assert length <= factor * baseline


def test_the_boundary_itself_is_within_budget():
    args = [Fraction(1, 2), Fraction(30), Fraction(20), Fraction(3, 2)]
    assert call(budget.BUDGETED, args) == Fraction(1, 2)
    assert call(budget.RULED, ["first", "second", 30, 20, Fraction(3, 2)]) == "first"
