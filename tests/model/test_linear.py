"""A projection of few rows is PyTorch's, natively or not."""

import pytest
import torch
from small import gap
from torch import nn

from k3.kernels import choose
from k3.kernels.native import library, product
from k3.model.linear import FEW, Projection, linear, project_

needs_native = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def projection(dtype=torch.float32):
    made = Projection(37, 1800, bias=False, dtype=dtype)
    made.weight.data = draw(1800, 37, seed=1, dtype=dtype)
    return made


@pytest.fixture
def calls(monkeypatch):
    """Count native products."""
    made, real = [], product.product
    monkeypatch.setattr(product, "product", lambda *a: (made.append(a), real(*a))[1])
    return made


@needs_native
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(37,), (1, 37), (2, 3, 37), (FEW, 1, 37)])
def test_few_rows_are_pytorchs(poisoned, calls, dtype, shape):
    made, x = projection(dtype), draw(*shape, dtype=dtype)
    with torch.no_grad():
        got = made(x)
        want = nn.functional.linear(x.double(), made.weight.double())
    assert len(calls) == 1
    assert (got.shape, got.dtype) == (want.shape, dtype)
    assert gap(got, want) < (1e-6 if dtype == torch.float32 else 1e-2)


@needs_native
def test_many_rows_none_another_dtype_and_gradients_are_pytorchs_to_run(calls):
    made, x = projection(), draw(2, 37)
    assert made(x).requires_grad
    with torch.no_grad():
        assert made(draw(FEW + 1, 37)).shape == (FEW + 1, 1800)
        assert made(draw(0, 37)).shape == (0, 1800)
        with choose.use("torch"):
            made(x)
        assert Projection(37, 63, bias=False)(x).shape == (2, 63)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert made(x).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="dtype"):
            made(x.double())
        assert projection(torch.float64)(x.double()).dtype == torch.float64
    assert not calls


def test_linears_within_become_projections_with_their_weights():
    net = nn.Sequential(linear(5, 7, torch.bfloat16), nn.Sequential(nn.ReLU()))
    net[1].append(linear(7, 3, torch.bfloat16))
    before = dict(net.state_dict(keep_vars=True))
    project_(net)
    assert type(net[0]) is type(net[1][1]) is Projection
    after = net.state_dict(keep_vars=True)
    assert before.keys() == after.keys()
    assert all(before[name] is x for name, x in after.items())
