"""Rounding to MXFP4 natively against PyTorch's form, bit for bit."""

import pytest
import torch

from k3.errors import ShapeError
from k3.kernels import choose, mx


def values(rows, groups, seed=0):
    """Magnitudes of all sizes, ties, zeros of both signs, subnormals, the largest."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, groups, 32, generator=generator)
    power = torch.randint(-149, 128, (rows, groups, 1), generator=generator)
    x = torch.ldexp(x.clamp(-1.99, 1.99), power)
    ties = torch.randint(-28, 29, x.shape, generator=generator) / 4
    x[::3] = torch.ldexp(ties, power.clamp(-120, 120))[::3]
    x[1::5, :, 7] = -0.0
    x[2::7, ::2] = 0.0
    return x.flatten(1)


@pytest.mark.parametrize("rule", mx.RULES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 5), (300, 9)])
def test_codes_scales_and_values_are_pytorchs(poisoned, shape, threads, rule):
    x, before = values(*shape), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with choose.use("native"):
            packed, scale = mx.encode(x, rule)
            kept = mx.rounded(x, rule)
    finally:
        torch.set_num_threads(before)
    with choose.use("torch"):
        want = mx.encode(x, rule)
        decoded = mx.decode(*want, torch.float32)
    assert torch.equal(scale, want[1])
    assert torch.equal(packed, want[0])
    assert torch.equal(kept.view(torch.int32), decoded.view(torch.int32))


def test_bf16_is_widened_first():
    x = values(5, 4, seed=1).bfloat16()
    with choose.use("native"):
        got = mx.encode(x)
    with choose.use("torch"):
        want = mx.encode(x)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("kind", ["native", "torch"])
@pytest.mark.parametrize("bad", [float("inf"), -float("inf"), float("nan")])
def test_what_is_not_finite_is_refused(kind, bad):
    x = torch.zeros(700, 96)
    x[650, 40] = bad
    with choose.use(kind):
        for run in (mx.encode, mx.rounded):
            with pytest.raises(ShapeError, match="finite values"):
                run(x)
