"""The native short convolution against PyTorch's form, values and gradients."""

import pytest
import torch
from levels import LEVELS, at_level
from small import gap

from k3.errors import ShapeError
from k3.kernels import choose, conv
from k3.kernels.native import conv as native

# Channels, width, batch or lengths: below, at and above a vector and a block.
CASES = [
    (1, 4, (3, 5)),
    (37, 4, (2, 9)),
    (300, 4, ((5, 0, 1, 2, 0, 33),)),
    (16, 2, ((1, 1),)),
    (259, 1, (2, 7)),
    (20, 7, (1, 3)),
    (20, 4, (2, 0)),
]
TOL = {torch.float32: 1e-5, torch.bfloat16: 8e-3}


def made(C, width, lens, dtype):
    generator = torch.Generator().manual_seed(C)
    packed = isinstance(lens[0], tuple)
    B, T = (1, sum(lens[0])) if packed else lens
    S = len(lens[0]) if packed else B
    shapes = [(B, T, C), (C, 1, width), (S, width - 1, C)]
    x, weight, window = (torch.randn(s, generator=generator) for s in shapes)
    given = x.to(dtype), weight, window.to(dtype)
    return given, lens[0] if packed else None


def run(kind, given, lens, *, grad=True):
    """[y, window after, gradients of x, weight and window] of a loss over both."""
    leaves = [x.clone().requires_grad_(grad) for x in given]
    with choose.use(kind):
        y, after = conv.short_conv(*leaves, lens)
    if not grad:
        return [y, after]
    loss = (y.float() * y.detach().float().cos()).sum() + after.float().square().sum()
    return [y, after, *torch.autograd.grad(loss, leaves)]


def agree(C, width, lens, dtype, *, grad=True):
    given, lens = made(C, width, lens, dtype)
    found, wanted = (run(kind, given, lens, grad=grad) for kind in ("native", "torch"))
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        assert gap(got, want) <= TOL[dtype]
    assert torch.equal(found[1], wanted[1])


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize(("C", "width", "lens"), CASES)
def test_values_and_gradients_are_pytorchs(poisoned, dtype, C, width, lens):
    agree(C, width, lens, dtype)


@pytest.mark.parametrize("level", LEVELS)
def test_at_every_level(poisoned, level):
    with at_level(level):
        agree(53, 4, (2, 6), torch.float32)
        agree(53, 4, (2, 6), torch.bfloat16, grad=False)


def test_threads_change_no_bit():
    given, _ = made(600, 4, (3, 90), torch.float32)
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(run("native", given, None))
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_strides_and_a_wide_window_of_narrow_rows():
    (x, weight, window), _ = made(24, 4, (2, 9), torch.float32)
    strided = torch.cat([x, x], -1)[..., ::2]
    given = strided, torch.cat([weight] * 2, 2)[..., ::2], window
    plain = [part.contiguous() for part in given]
    for got, want in zip(
        run("native", given, None), run("torch", plain, None), strict=True
    ):
        assert gap(got, want) <= 1e-5
    mixed = x.bfloat16(), weight, window
    for got, want in zip(
        run("native", mixed, None), run("torch", mixed, None), strict=True
    ):
        assert got.dtype == want.dtype
        assert gap(got, want) <= 8e-3


def test_a_nan_stays_in_its_sequence_and_window():
    given, lens = made(20, 4, ((5, 4, 6),), torch.float32)
    with choose.use("native"):
        before, _ = conv.short_conv(*given, lens)
        given[0][:, 5:9] = torch.nan
        after, kept = conv.short_conv(*given, lens)
    assert torch.equal(before[:, :5], after[:, :5])
    assert torch.equal(before[:, 9:], after[:, 9:])
    assert after[:, 5:9].isnan().all()
    assert kept[[0, 2]].isfinite().all()


def test_wrong_lengths_are_refused():
    (x, weight, window), _ = made(8, 4, (1, 9), torch.float32)
    with pytest.raises(ShapeError, match=r"add up to B T: got .* and lengths \(3,\)"):
        native.short_conv(x, weight, window, lens=(3,), record=False)
