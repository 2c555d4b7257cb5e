"""SiTU: the article's number, its bound, its limits."""

import math

import pytest
import tolerances
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import gap

from k3.kernels import situ

NUMBERS = st.floats(-1e6, 1e6)


def reference(g, u, beta, linear):
    capped = beta * torch.tanh(g / beta) * torch.sigmoid(g)
    return capped * linear * torch.tanh(u / linear)


def test_the_articles_number():
    y = situ.situ(torch.tensor([2.0]), torch.tensor([6.0]), 4.0, 25.0)
    assert y.item() == pytest.approx(9.585417, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_formula(dtype):
    g, u = (torch.randn(7, 13).mul(20).to(dtype) for _ in range(2))
    y = situ.situ(g, u, 4.0, 25.0)
    assert y.dtype == dtype
    want = reference(g.double(), u.double(), 4.0, 25.0)
    assert gap(y, want) < tolerances.of("situ", dtype)


@given(g=NUMBERS, u=NUMBERS)
def test_bounded_by_the_product_of_the_caps(g, u):
    y = situ.situ(torch.tensor([g]), torch.tensor([u]), 4.0, 25.0)
    assert abs(y.item()) <= 100.0


def test_infinite_factors_reach_the_caps():
    g = torch.tensor([math.inf, -math.inf, math.inf])
    u = torch.tensor([math.inf, math.inf, -math.inf])
    assert situ.situ(g, u, 4.0, 25.0).tolist() == [100.0, 0.0, -100.0]


def test_the_sigmoid_takes_the_raw_gate():
    g = torch.tensor([8.0], dtype=torch.float64)
    y = situ.situ(g, torch.ones_like(g), 4.0, 25.0)
    capped = 4 * torch.tanh(g / 4)
    wrong = capped * torch.sigmoid(capped) * 25 * math.tanh(1 / 25)
    assert gap(y, wrong) > 1e-3


def test_the_up_branch_is_capped():
    y = situ.situ(torch.tensor([50.0]), torch.tensor([1000.0]), 4.0, 25.0)
    assert y.item() == pytest.approx(100.0)


def test_gradients():
    g, u = (torch.randn(3, 5, dtype=torch.float64, requires_grad=True) for _ in "gu")
    assert torch.autograd.gradcheck(lambda g, u: situ.situ(g, u, 4.0, 25.0), (g, u))
