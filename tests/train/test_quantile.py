"""Quantile Balancing of one layer: what lands where, ties, empty and full ranges."""

import pytest
import torch

from k3.train import balance, quantile

REPORT = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])


def loads(s, b, k):
    index = (s + b).topk(k, -1).indices
    return torch.bincount(index.flatten(), minlength=s.shape[1]).tolist()


def test_report_74_two_experts_are_even_after_one_update():
    zero = torch.zeros(2)
    assert loads(REPORT, zero, 1) == [4, 0]
    b = balance.center(quantile.exact(quantile.requirements(REPORT, zero, 1), 1))
    torch.testing.assert_close(b, torch.tensor([-0.25, 0.25]))
    assert loads(REPORT, b, 1) == [2, 2]
    found = quantile.counts(REPORT, zero, 1, 1000)
    b = balance.center(quantile.estimate(found, zero, 1))
    assert loads(REPORT, b, 1) == [2, 2]
    assert float(b.sum()) == pytest.approx(0, abs=1e-6)


def test_report_74_the_cutoff_is_the_score_after_the_chosen_ones():
    s = torch.tensor([[0.5, 0.1, 0.3, 0.2]])
    b = torch.tensor([0.0, 0.5, 0.0, 0.0])
    want = 0.3 - s  # of 0.6, 0.5, 0.3, 0.2 the third, two being chosen
    torch.testing.assert_close(quantile.requirements(s, b, 2), want)


def test_report_74_ties_are_defined():
    s, zero = torch.full((6, 4), 0.5), torch.zeros(4)
    for b in (
        quantile.exact(quantile.requirements(s, zero, 1), 1),
        quantile.estimate(quantile.counts(s, zero, 1, 100), zero, 1),
    ):
        assert not balance.center(b).any()


def test_a_skewed_router_is_even_after_a_few_updates():
    torch.manual_seed(0)
    s = torch.sigmoid(torch.randn(999, 16) + torch.linspace(-3, 3, 16))
    for update in (
        lambda b: quantile.exact(quantile.requirements(s, b, 3), 3),
        lambda b: quantile.estimate(quantile.counts(s, b, 3, 1000), b, 3),
    ):
        b = torch.zeros(16)
        assert max(loads(s, b, 3)) > 2 * 999 * 3 / 16
        for _ in range(8):
            b = balance.center(update(b))
        assert max(loads(s, b, 3)) < 1.2 * 999 * 3 / 16


def test_one_bin_and_one_token():
    s, b = torch.rand(1, 5), torch.zeros(5)
    for bins in (1, 3):
        assert quantile.estimate(quantile.counts(s, b, 2, bins), b, 2).isfinite().all()
