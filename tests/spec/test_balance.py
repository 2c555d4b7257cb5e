from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readings.carriers import fractions, same

from k3.spec import balance, balance_histogram, moe

margins = st.lists(st.integers(-4, 4), min_size=1, max_size=8)


def exact(values):
    return fractions(np.array(values, dtype=float))


@settings(deadline=None)
@given(margins, st.data())
def test_threshold_minimizes_for_every_real_target(values, data):
    target = Fraction(data.draw(st.integers(0, 4 * len(values))), 4)
    m = exact(values)
    theta = balance.threshold(m, target)
    assert balance.is_minimizer(m, target, theta)
    best = balance.coordinate_objective(m, target, theta)
    for other in [Fraction(n, 2) for n in range(-12, 13)]:
        value = balance.coordinate_objective(m, target, other)
        assert value >= best
        assert (value == best) == balance.is_minimizer(m, target, other)


def test_appendix_c_counterexample():
    m = exact([1, 0])
    for theta in (Fraction(0), Fraction(1, 2), Fraction(1)):
        assert balance.coordinate_objective(m, 1, theta) == 1
        assert balance.is_minimizer(m, 1, theta)
    assert balance.exceedance(m, Fraction(1)) == 0
    assert balance.at_least(m, Fraction(1)) == 1


def test_step_reads_alike_and_hits_the_target(rng):
    s, b = rng.uniform(size=(24, 6)), rng.normal(size=6) / 10
    after = same(balance.step, s, b, 2, exact=True)
    assert after.sum() == pytest.approx(0, abs=1e-12)
    s, b = exact(s), exact(b)
    alpha = balance.cutoffs(s, b, 2)
    q = balance.target_load(24, 6, 2)
    assert q == 8
    raw = balance.bias(s, alpha, q)
    # Tokens whose cutoff an expert sets itself share one margin, so ties are usual.
    for j in range(6):
        assert balance.is_minimizer(s[:, j] - alpha, q, -raw[j])
    strict = balance.above(s, alpha, raw)
    assert all(count <= 8 for count in strict)
    assert strict.count(8) >= 4


def test_cutoff_readings_differ_by_one_rank(rng):
    s, b = rng.uniform(size=(5, 6)), np.zeros(6)
    release = balance.cutoffs(s, b, 2)
    article = balance.cutoffs(s, b, 2, "article")
    for i in range(5):
        ranked = sorted(s[i], reverse=True)
        assert (article[i], release[i]) == (ranked[1], ranked[2])


def test_centering_keeps_every_route(rng):
    s, b = exact(rng.uniform(size=(9, 5))), exact(rng.normal(size=5))
    centered = balance.center(b)
    assert sum(centered) == 0
    assert balance.loads(s, b, 2) == balance.loads(s, centered, 2)
    assert sum(balance.loads(s, b, 2)) == 18


def test_weak_duality_and_lagrangian(rng):
    m, n, k = 4, 4, 2
    s = exact(rng.uniform(size=(m, n)))
    x = exact([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    assert balance.is_assignment(x, k)
    assert not balance.is_assignment(x[::-1] * 2, k)
    alpha, beta = exact(rng.normal(size=m)), exact(rng.normal(size=n))
    value = balance.lagrangian(s, x, alpha, beta, k)
    assert value == balance.primal(s, x) <= balance.dual(s, alpha, beta, k)
    pick = exact((s - alpha[:, None] - beta[None, :] > 0).astype(float))
    best = balance.lagrangian(s, pick, alpha, beta, k)
    assert best == balance.dual(s, alpha, beta, k)
    same(
        balance.dual,
        rng.uniform(size=(m, n)),
        rng.normal(size=m),
        rng.normal(size=n),
        k,
        exact=True,
    )


def test_alternation_lowers_the_dual_and_balances(rng):
    s = rng.uniform(size=(40, 5)) * np.array([1.5, 1, 1, 1, 0.5])
    values = []
    for rounds in range(6):
        alpha, beta = same(balance.alternate, s, 2, rounds)
        values.append(balance.dual(s, alpha, beta, 2))
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))
    spread = max(balance.loads(s, -beta, 2)) - min(balance.loads(s, -beta, 2))
    assert spread < max(balance.loads(s, beta * 0, 2)) - min(
        balance.loads(s, beta * 0, 2)
    )


def test_dual_gradient_is_a_difference_quotient(rng):
    s, alpha, beta = rng.uniform(size=(6, 3)), rng.uniform(size=6), rng.normal(size=3)
    slope = balance.dual_gradient(s, alpha, beta, 1)
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-7
        ahead = balance.dual(s, alpha, beta + step, 1)
        back = balance.dual(s, alpha, beta - step, 1)
        assert (ahead - back) / 2e-7 == pytest.approx(float(slope[j]), abs=1e-5)


def test_optimal_dual_equals_the_best_assignment():
    s = exact([[3, 1], [2, 2]])
    best = max(
        balance.primal(s, x)
        for rows in product([[1, 0], [0, 1]], repeat=2)
        if balance.is_assignment(x := exact(rows), 1)
    )
    alpha, beta = balance.alternate(s, 1, 3)
    assert best == balance.dual(s, alpha, beta, 1) == 5


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 100), min_size=3, max_size=20), st.data())
def test_histogram_is_within_one_bin(scores, data):
    m = len(scores)
    target = Fraction(data.draw(st.integers(1, 4 * m)), 4)
    r = exact(scores) / 100
    low, bins = Fraction(-1), 30
    w = balance_histogram.width(low, Fraction(2), bins)
    counts = balance_histogram.counts(r, low, w, bins)
    assert sum(counts) == m
    got = balance_histogram.estimate(counts, target, low, w)
    true = sorted(r)[-(-target // 1) - 1]
    assert abs(got - true) <= w
    at = balance_histogram.select(counts, target)
    assert low + at * w <= true <= low + (at + 1) * w
    half = m // 2
    parts = [
        balance_histogram.counts(part, low, w, bins) for part in (r[:half], r[half:])
    ]
    assert balance_histogram.pool(parts) == counts


def test_histogram_bias_reads_alike_and_is_near(rng):
    s, b = rng.uniform(size=(24, 6)), rng.normal(size=6) / 10
    alpha = balance.cutoffs(s, b, 2)
    got = same(balance_histogram.bias, s, alpha, b, 8, 400, exact=True)
    low, high = balance_histogram.limits(b)
    # The estimate aims at the q-th smallest requirement, the bias at the (q+1)-th.
    for j in range(6):
        r = np.sort(alpha - s[:, j])
        assert r[7] - (high - low) / 400 <= got[j] <= r[7] + (high - low) / 400
    assert all(low <= x <= high for x in (alpha[:, None] - s).flat)


def test_loads_count_routes(rng):
    s = rng.uniform(size=(7, 4))
    loads = balance.loads(s, np.zeros(4), 2)
    assert loads == [sum(e in moe.top_k(row, 2) for row in s) for e in range(4)]
