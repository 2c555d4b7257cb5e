import torch
from readings import agree, tensor  # noqa: F401

from k3.kernels import norm as fast
from k3.spec import norm as spec


def test_rms_norm():
    x, w = torch.randn(3, 7), torch.randn(7)
    for eps in (1e-5, 1e-6):
        agree.same(
            lambda x, w, e=eps: fast.rms_norm(x, w, e),
            lambda x, w, e=eps: spec.rms_norm(x, w, e),
            [x, w],
        )
