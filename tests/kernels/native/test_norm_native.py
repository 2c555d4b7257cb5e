"""RMSNorm natively against PyTorch's form."""

import pytest
import torch
from small import gap

from k3.kernels import choose, norm


@pytest.mark.parametrize("held", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(0, 8), (1, 1), (63, 100), (3, 5, 37)])
def test_rms_norm_is_pytorchs(poisoned, shape, dtype, held):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator).to(dtype)
    weight = torch.randn(shape[-1], generator=generator).to(held)
    got = norm.rms_norm(x, weight, 1e-5)
    with choose.use("torch"):
        want = norm.rms_norm(x, weight, 1e-5)
    assert got.dtype == want.dtype
    assert gap(got, want) < (1e-6 if dtype == torch.float32 else 1e-2)


def test_the_normed_value_is_rounded_before_the_weight_and_the_result_after():
    x, weight = torch.arange(1.0, 17)[None].bfloat16(), torch.arange(3.0, 19).bfloat16()
    scale = (x.double() ** 2).mean().rsqrt().float()
    normed = (x.float() * scale).bfloat16()
    twice = (normed.float() * weight.float()).bfloat16()
    once = (x.float() * scale * weight.float()).bfloat16()
    assert not torch.equal(once, twice)
    for name in ("native", "torch"):
        with choose.use(name):
            assert torch.equal(norm.rms_norm(x, weight, 0.0), twice)
