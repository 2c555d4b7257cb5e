"""AttnRes mixing natively against PyTorch's form, values and gradients."""

import pytest
import torch
from small import gap

from k3.kernels import attn_res, choose


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 5), (2, 7, 26), (33, 4, 100)])
@pytest.mark.parametrize("running", [True, False])
def test_values_and_gradients_are_pytorchs(poisoned, shape, running):
    n, S, D = shape
    generator = torch.Generator().manual_seed(0)

    def draw(*size):
        return torch.randn(size, generator=generator)

    made = draw(n, 2, S, D), draw(n, 2, S).exp(), draw(n, 2, D), draw(D)
    dy, results = draw(n, 2, D), []
    for kind in ("native", "torch"):
        blocks, scale, prefix, query = (x.clone().requires_grad_() for x in made)
        with choose.use(kind):
            last = prefix if running else None
            y = attn_res.mix(blocks, scale, last, query, 1e-5)
        leaves = [blocks, scale, query, *([prefix] if running else [])]
        results.append([y, *torch.autograd.grad(y, leaves, dy)])
    for got, want in zip(*results, strict=True):
        assert gap(got, want) < 2e-6


def test_a_nan_in_a_source_is_not_hidden():
    blocks = torch.ones(1, 2, 3)
    blocks[0, 1, 1] = torch.nan
    with choose.use("native"):
        y = attn_res.mix(blocks, torch.ones(1, 2), None, torch.ones(3), 1e-5)
    assert y.isnan().all()
