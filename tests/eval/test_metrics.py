"""Metrics against what they mean: draws counted one by one, intervals that cover."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.eval import metrics


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(count):
    for right, k in itertools.product(range(count + 1), range(1, count + 1)):
        answers = [1] * right + [0] * (count - right)
        draws = list(itertools.combinations(answers, k))
        share = sum(map(max, draws)) / len(draws)
        assert metrics.pass_at_k(count, right, k) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0)])
def test_pass_at_k_refuses_what_cannot_be_drawn(n, c, k):
    with pytest.raises(RequestError, match=f"got n={n}, c={c}, k={k}"):
        metrics.pass_at_k(n, c, k)


def test_exact_match_looks_past_space_around_alone():
    assert metrics.exact_match(" a b\n", "a b") == 1.0
    assert metrics.exact_match("a  b", "a b") == 0.0


@pytest.mark.parametrize(
    ("answer", "wanted", "value"),
    [
        ("a b", "a b", 1.0),
        ("a b c d", "a b", 2 / 3),
        ("a a", "a", 2 / 3),
        ("x", "a b", 0.0),
        ("", "", 1.0),
        ("", "a", 0.0),
    ],
)
def test_f1_counts_words_as_often_as_they_come(answer, wanted, value):
    assert metrics.f1(answer, wanted) == pytest.approx(value)


@given(st.integers(1, 400), st.data())
def test_wilson_holds_the_share_and_solves_its_equation(count, data):
    right = data.draw(st.integers(0, count))
    low, high = metrics.wilson(right, count)
    assert 0 <= low <= right / count <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:
            deviation = metrics.Z95 * math.sqrt(bound * (1 - bound) / count)
            assert abs(right / count - bound) == pytest.approx(deviation, abs=1e-9)


def test_wilson_of_nothing_knows_nothing():
    assert metrics.wilson(0, 0) == (0.0, 1.0)


def test_bootstrap_agrees_with_the_normal_interval_of_a_mean():
    values = np.random.default_rng(1).normal(3, 1, 400)
    low, high = metrics.bootstrap(list(values))
    half = metrics.Z95 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.02)
    assert high == pytest.approx(values.mean() + half, abs=0.02)
    assert metrics.bootstrap([]) == (-math.inf, math.inf)


def test_bootstrap_of_a_ratio_lies_around_the_ratio():
    low, high = metrics.bootstrap([2.0, 40.0, 3.0], [1.0, 10.0, 2.0])
    assert 1.5 <= low <= 45 / 13 <= high <= 4.0
