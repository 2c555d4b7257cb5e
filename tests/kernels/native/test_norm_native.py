"""RMSNorm natively against PyTorch's form."""

import pytest
import torch
from small import gap

from k3.kernels import choose, norm


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(0, 8), (1, 1), (63, 100), (3, 5, 37)])
def test_rms_norm_is_pytorchs(poisoned, shape, dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator).to(dtype)
    weight = torch.randn(shape[-1], generator=generator)
    got = norm.rms_norm(x, weight, 1e-5)
    with choose.use("torch"):
        want = norm.rms_norm(x, weight, 1e-5)
    assert got.dtype == want.dtype
    assert gap(got, want) < (1e-6 if dtype == torch.float32 else 1e-2)
