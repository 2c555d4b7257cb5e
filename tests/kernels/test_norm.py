"""RMSNorm and L2 norm: formula, cast order, degenerate rows."""

import pytest
import tolerances
import torch
from small import gap

from k3.kernels import norm

DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def reference(x, weight, eps):
    x = x.double()
    return weight.double() * x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eps", [1e-5, 1e-6])
def test_formula(dtype, eps):
    x, weight = torch.randn(5, 3, 37).to(dtype), torch.rand(37).to(dtype)
    y = norm.rms_norm(x, weight, eps)
    assert y.dtype == dtype
    assert gap(y, reference(x, weight, eps)) < tolerances.of("norm", dtype)


def test_the_cast_comes_before_the_weight():
    """1/3 rounds to bf16 first; times 3 in fp32 it is not 1 again."""
    x = torch.tensor([[1.0, 3.0]]).bfloat16()
    weight = torch.tensor([3.0, 3.0])
    want = norm.rms_norm(x, torch.ones(2, dtype=torch.bfloat16), 0.0).float() * 3
    y = norm.rms_norm(x, weight, 0.0)
    assert y.dtype == torch.float32
    assert torch.equal(y, want)
    assert not torch.equal(y, norm.rms_norm(x.float(), weight, 0.0))


def test_eps_is_inside_the_root_and_counts():
    x = torch.full((1, 4), 1e-3)
    y = norm.rms_norm(x, torch.ones(4), 1e-5)
    assert gap(y, reference(x, torch.ones(4), 1e-5)) < 1e-6
    assert abs(y[0, 0] - 1) > 0.5


def test_zero_rows_have_zero_output_and_finite_gradients():
    x = torch.zeros(2, 5, requires_grad=True)
    loss = norm.rms_norm(x, torch.ones(5), 1e-5).sum() + norm.l2_norm(x).sum()
    (grad,) = torch.autograd.grad(loss, x)
    assert loss == 0
    assert grad.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_l2_norm(dtype):
    x = torch.randn(4, 3, 12).to(dtype)
    y = norm.l2_norm(x)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    want = x.double() / torch.sqrt(x.double().square().sum(-1, keepdim=True) + 1e-6)
    assert y.dtype == wide
    assert gap(y, want) < tolerances.of("norm", wide)


def test_no_rows():
    assert norm.rms_norm(torch.zeros(2, 0, 7), torch.ones(7), 1e-5).shape == (2, 0, 7)
    assert norm.l2_norm(torch.zeros(0, 7)).shape == (0, 7)
