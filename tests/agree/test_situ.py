import torch
from readings import agree, tensor  # noqa: F401

from k3.kernels import situ as fast
from k3.spec import situ as spec


def test_situ():
    gate, up = torch.randn(3, 7) * 20, torch.randn(3, 7) * 60
    agree.same(
        lambda g, u: fast.situ(g, u, 4.0, 25.0),
        lambda g, u: spec.situ(g, u, 4, 25),
        [gate, up],
    )
