"""The short convolution: windows carried over any cut, gradients through them."""

import pytest
import torch
import torch.nn.functional as F
from small import gap

from k3.kernels import conv

C = 7


def made(T, width=4, sequences=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(width)
    shapes = [(sequences, T, C), (C, 1, width), (sequences, width - 1, C)]
    return [torch.randn(*s, generator=generator, dtype=dtype) for s in shapes]


def by_definition(x, weight, window):
    """torch's own convolution over the window and x."""
    rows = torch.cat([window, x], 1)
    y = F.silu(F.conv1d(rows.mT, weight, groups=C).mT)
    return y, rows[:, rows.shape[1] - window.shape[1] :]


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("T", [1, 2, 3, 9])
def test_formula(width, T):
    x, weight, window = made(T, width, 3)
    for got, want in zip(
        conv.short_conv(x, weight, window),
        by_definition(x, weight, window),
        strict=True,
    ):
        assert gap(got, want) < 1e-12


def pieces(x, weight, window, cuts):
    """Run x in pieces, carrying the window: (outputs, final window)."""
    outs = []
    for piece in x.split(cuts, 1):
        y, window = conv.short_conv(piece, weight, window)
        outs.append(y)
    return torch.cat(outs, 1), window


@pytest.mark.parametrize("cuts", [[8], [1] * 8, [2, 1, 3, 2], [3, 5], [0, 8, 0]])
def test_report_28_gradients_of_pieces_shorter_than_the_filter(poisoned, cuts):
    """The loss touches the final window, in which the first one may survive."""
    results = []
    for form in (by_definition, lambda *a: pieces(*a, cuts)):
        leaves = [x.requires_grad_() for x in made(8)]
        y, window = form(*leaves)
        loss = (y * y.detach().cos()).sum() + window.square().sum()
        results.append([y, window, *torch.autograd.grad(loss, leaves)])
    for got, want in zip(*results, strict=True):
        assert gap(got, want) < 1e-10


@pytest.mark.parametrize("T", [1, 2])
def test_report_28_what_survives_of_the_first_window_has_a_gradient(T):
    x, weight, window = made(T)
    window.requires_grad_()
    _, after = conv.short_conv(x, weight, window)
    (grad,) = torch.autograd.grad(after.sum(), window)
    assert grad[0, :, 0].tolist() == [0.0] * T + [1.0] * (3 - T)


@pytest.mark.parametrize("lens", [(5, 0, 1, 2, 0, 9), (0, 0), (3,)])
def test_packed_sequences_are_each_alone(poisoned, lens):
    x, weight, _ = made(sum(lens))
    windows = torch.randn(len(lens), 3, C, dtype=torch.float64)
    y, after = conv.short_conv(x, weight, windows, lens)
    for s, piece in enumerate(x[0].split(list(lens))):
        alone, window = conv.short_conv(piece[None], weight, windows[s : s + 1])
        start = sum(lens[:s])
        assert gap(y[:, start : start + lens[s]], alone) < 1e-12
        assert torch.equal(after[s], window[0])


def test_nothing_leaks_over_a_boundary():
    lens = (5, 4, 6)
    x, weight, _ = made(15)
    windows = torch.zeros(3, 3, C, dtype=torch.float64)
    before, _ = conv.short_conv(x, weight, windows, lens)
    x[:, 5:9] = torch.nan
    after, kept = conv.short_conv(x, weight, windows, lens)
    assert torch.equal(before[:, :5], after[:, :5])
    assert torch.equal(before[:, 9:], after[:, 9:])
    assert kept[[0, 2]].isfinite().all()


def test_narrow_inputs_are_computed_wide():
    x, weight, window = made(9, dtype=torch.float32)
    y, after = conv.short_conv(x.bfloat16(), weight, window.bfloat16())
    want, _ = by_definition(x.bfloat16().float(), weight, window.bfloat16().float())
    assert y.dtype == after.dtype == torch.bfloat16
    assert gap(y, want) < 2**-8


def test_an_empty_piece_leaves_the_window():
    x, weight, window = made(0, sequences=2)
    y, after = conv.short_conv(x, weight, window)
    assert y.shape == (2, 0, C)
    assert torch.equal(after, window)
