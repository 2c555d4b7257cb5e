"""SiTU natively against PyTorch's form, values and gradients."""

import pytest
import torch
from small import gap

from k3.kernels import choose, situ

TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 1e-2}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 13), (3, 5, 100), (37, 1111)])
def test_values_and_gradients_are_pytorchs(poisoned, dtype, shape):
    generator = torch.Generator().manual_seed(0)
    g, u, dy = (torch.randn(shape, generator=generator) for _ in range(3))
    results = []
    for kind in ("native", "torch"):
        leaves = [(8 * x).to(dtype).requires_grad_() for x in (g, 5 * u)]
        with choose.use(kind):
            y = situ.situ(*leaves, 4.0, 25.0)
        y.backward(dy.to(dtype))
        results.append([y, *(x.grad for x in leaves)])
    for got, want in zip(*results, strict=True):
        assert got.dtype == dtype
        assert gap(got, want) < TOLERANCE[dtype]


def test_small_and_huge_values():
    g = torch.tensor([1e-30, -1e-5, 0.2, 0.349, 0.351, 1e4, -1e4, 88.0, -200.0])
    with choose.use("native"):
        got = [situ.situ(a, b, 4.0, 25.0) for a, b in ((g, g + 1), (g + 1, g))]
    want = [
        situ.situ(a.double(), b.double(), 4.0, 25.0)
        for a, b in ((g, g + 1), (g + 1, g))
    ]
    for a, b in zip(got, want, strict=True):
        assert ((a - b).abs() <= 1e-6 * b.abs() + 1e-36).all()
