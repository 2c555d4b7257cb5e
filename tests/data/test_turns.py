"""Shares of a period, and that each is spread over it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data.turns import PERIOD, Turns, counts
from k3.errors import RequestError


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=9))
def test_shares_are_exact_to_one_row(weights):
    found = counts(weights)
    assert sum(found) == PERIOD
    for count, weight in zip(found, weights, strict=True):
        assert abs(count - PERIOD * weight / sum(weights)) < 1


def test_every_group_counts_its_own_rows():
    turns = Turns([5, 3, 2])
    seen = [0, 0, 0]
    for number in range(2 * PERIOD + 17):
        group, count = turns.of(number)
        assert count == seen[group]
        seen[group] += 1


def test_any_ten_rows_hold_each_group_about_its_share():
    turns = Turns([0.6, 0.3, 0.1])
    for start in range(0, PERIOD, 7):
        groups = [turns.of(number)[0] for number in range(start, start + 10)]
        assert [abs(groups.count(g) - n) <= 1 for g, n in enumerate([6, 3, 1])] == [
            True
        ] * 3


def test_a_share_below_one_row_is_refused():
    with pytest.raises(RequestError, match="at least one row of 1000"):
        counts([1.0, 1e-4])
