"""Two-dimensional rotary positions: column first, the same in every frame."""

import pytest
import torch
from small import gap

from k3.kernels import rotary

CPU = torch.device("cpu")


def test_even_pairs_turn_by_column_and_odd_ones_by_row():
    turn = rotary.angles((2, 3, 5), 8, CPU).view(2, 3, 5, 4)
    column, row = torch.arange(5.0).double(), torch.arange(3.0).double()
    slow = 10000 ** (-4 / 8)
    for frame in turn:
        assert torch.equal(frame[..., 0], column.expand(3, 5))
        assert torch.equal(frame[..., 1], row[:, None].expand(3, 5))
        assert gap(frame[..., 2], column.expand(3, 5) * slow) < 1e-12
        assert gap(frame[..., 3], row[:, None].expand(3, 5) * slow) < 1e-12


def test_rotate_is_a_complex_product():
    x = torch.randn(2, 3, 15, 8, dtype=torch.float64)
    turn = rotary.angles((1, 3, 5), 8, CPU)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    want = torch.view_as_real(pairs * torch.exp(1j * turn)).flatten(-2)
    assert gap(rotary.rotate(x, turn), want) < 1e-12


def test_scores_depend_on_differences_only():
    """A query and a key moved together keep their product."""
    q, k = (torch.randn(8, dtype=torch.float64).expand(1, 1, 48, 8) for _ in "qk")
    turn = rotary.angles((1, 6, 8), 8, CPU)
    a, b = rotary.rotate(q, turn), rotary.rotate(k, turn)
    scores = (a @ b.mT)[0, 0].view(6, 8, 6, 8)
    assert gap(scores[1, 2, 3, 5], scores[0, 0, 2, 3]) < 1e-12
    assert gap(scores[1, 2, 3, 5], scores[0, 0, 3, 2]) > 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtype_is_kept(dtype):
    x = torch.randn(1, 2, 4, 8).to(dtype)
    assert rotary.rotate(x, rotary.angles((1, 2, 2), 8, CPU)).dtype == dtype
