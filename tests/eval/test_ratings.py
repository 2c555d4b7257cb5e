"""Ratings: closed forms, symmetry, intervals that cover."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.eval import ratings


def table(*wins):
    """Two competitors: for each question, how much of it the first has won."""
    return np.array([[[0, w], [1 - w, 0]] for w in wins], float)


@given(st.integers(0, 50), st.integers(0, 50))
def test_two_competitors_have_the_closed_form(won, lost):
    wins = np.array([[0.0, won], [lost, 0.0]])
    first, second = ratings.elo(wins)
    # Half a tie beforehand is a quarter to each.
    expected = 400 * math.log10((won + 0.25) / (lost + 0.25))
    assert first - second == pytest.approx(expected, abs=1e-4)
    assert first + second == pytest.approx(2000)


def test_strengths_that_made_the_shares_are_found_again():
    strength = np.array([1.0, 2.0, 5.0, 0.5])
    chance = strength[:, None] / (strength[:, None] + strength)
    wins = 1e6 * chance * (1 - np.eye(4))
    expected = 400 * np.log10(strength)
    found = ratings.elo(wins)
    np.testing.assert_allclose(
        found - found.mean(), expected - expected.mean(), atol=1e-3
    )


@pytest.mark.parametrize(("count", "games"), [(3, 400), (6, 400), (10, 5000)])
def test_who_always_beats_those_below_is_as_likely_as_can_be(count, games):
    wins = np.triu(np.full((count, count), float(games)), 1)
    found = ratings.elo(wins)
    # At the top of the likelihood all have won what was to be expected.
    chance = 1 / (1 + 10 ** ((found - found[:, None]) / 400))
    held = wins + (1 - np.eye(count)) / 4
    expected = ((held + held.T) * chance * (1 - np.eye(count))).sum(1)
    np.testing.assert_allclose(expected, held.sum(1), atol=1e-6)
    assert found.mean() == pytest.approx(1000)


def test_a_cycle_makes_all_equal():
    wins = np.array([[0.0, 9, 1], [1, 0, 9], [9, 1, 0]])
    np.testing.assert_allclose(ratings.elo(wins), 1000)
    np.testing.assert_allclose(ratings.win_rate(wins), 0.5)


def test_who_lost_everything_is_rated_and_nobody_is_at_the_half():
    one, two = ratings.rate(["a", "b"], table(*[1.0] * 10))
    assert (one.wins, two.wins) == (1.0, 0.0)
    assert math.isfinite(two.elo)
    assert one.elo_low == one.elo_high == pytest.approx(one.elo)
    assert ratings.win_rate(np.zeros((2, 2))).tolist() == [0.5, 0.5]


def test_intervals_hold_the_rate_and_narrow():
    rng = np.random.default_rng(3)
    few, many = (table(*rng.integers(0, 2, n)) for n in (20, 2000))
    widths = []
    for found in (few, many):
        one, two = ratings.rate(["a", "b"], found, draws=300)
        assert one.wins_low <= one.wins <= one.wins_high
        assert one.elo_low <= one.elo <= one.elo_high
        assert one.wins == pytest.approx(1 - two.wins)
        widths.append(one.wins_high - one.wins_low)
    assert widths[1] < widths[0] / 5
    # A share of n answers has 2 * 1.96 * 0.5 / sqrt(n).
    assert widths[1] == pytest.approx(1.96 / math.sqrt(2000), rel=0.15)


@pytest.mark.parametrize(
    ("names", "found"),
    [(["a"], np.zeros((3, 1, 1))), (["a", "b"], np.zeros((0, 2, 2)))],
)
def test_nothing_to_rate_is_refused(names, found):
    with pytest.raises(RequestError, match="two competitors and a question"):
        ratings.rate(names, found)
