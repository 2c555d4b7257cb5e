"""Balancing against the spec: requirements, exact quantiles, the histogram."""

from fractions import Fraction

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import agree, tensor  # noqa: F401

from k3.spec import balance as spec
from k3.spec import balance_histogram as spec_histogram
from k3.train import balance, quantile

SIZES = st.tuples(
    st.integers(1, 13), st.integers(2, 6), st.integers(1, 5), st.booleans()
)


def draw(sizes):
    """Scores of so many tokens and experts, k below them, a bias; coarse if asked."""
    T, E, k, coarse = sizes
    s, b = torch.rand(T, E, dtype=torch.float64), torch.randn(E, dtype=torch.float64)
    if coarse:
        s, b = (s * 4).round() / 4, (b * 4).round() / 4
    return s, b / 8, min(k, E - 1)


@settings(deadline=None, max_examples=40)
@given(SIZES)
def test_exact_quantile(sizes):
    s, b, k = draw(sizes)
    alpha, q = spec.cutoffs(s, b, k), spec.target_load(len(s), len(b), k)
    r = quantile.requirements(s, b, k)
    agree.close(r, alpha[:, None] - s, 0.0, "requirements")
    got = quantile.exact(r, k)
    for j in range(len(b)):
        assert spec.is_minimizer(s[:, j] - alpha, q, -got[j])
    want = spec.bias(s, alpha, q)
    if q.denominator == 1:
        want = (want + spec.bias(s, alpha, q - Fraction(1, 2))) / 2
    agree.close(got, want, 1e-15, "exact")
    agree.close(balance.center(got), spec.center(got), 1e-15, "center")


@settings(deadline=None, max_examples=40)
@given(SIZES, st.sampled_from([1, 7, 1000]))
def test_histogram(sizes, bins):
    s, b, k = draw(sizes)
    alpha, q = spec.cutoffs(s, b, k), spec.target_load(len(s), len(b), k)
    low, high = spec_histogram.limits(b)
    w = spec_histogram.width(low, high, bins)
    found = quantile.counts(s, b, k, bins)
    for j in range(len(b)):
        want = spec_histogram.counts(alpha - s[:, j], low, w, bins)
        assert found[j].tolist() == want
    got = quantile.estimate(found, b, k)
    agree.close(got, spec_histogram.bias(s, alpha, b, q, bins), 1e-12, "estimate")
    rising = (alpha[:, None] - s).sort(0).values[-(-q.numerator // q.denominator) - 1]
    assert ((got - rising).abs() <= w + 1e-12).all()


@settings(deadline=None, max_examples=20)
@given(SIZES, st.integers(1, 3))
def test_shards_pool(sizes, shards):
    s, b, k = draw(sizes)
    parts = [quantile.counts(part, b, k, 50) for part in s.chunk(shards)]
    want = [spec_histogram.pool([p[j].tolist() for p in parts]) for j in range(len(b))]
    assert torch.stack(parts).sum(0).tolist() == want
    assert torch.equal(torch.stack(parts).sum(0), quantile.counts(s, b, k, 50))
