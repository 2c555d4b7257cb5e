"""MXFP8 as training sees it: nearest values, and gradients as if there were none."""

import pytest
import torch

from k3.errors import ShapeError
from k3.kernels import mxfp8


def test_every_value_of_a_group_is_held_and_ties_are_even():
    held = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    held = held[held.isfinite()]
    row = torch.cat([held, held.new_full((2,), 448.0)]).view(8, 32)
    row[:, 0] = 448
    assert torch.equal(mxfp8.rounded(row * 2.0**-20), row * 2.0**-20)
    row[0, :4] = torch.tensor([448.0, 17.0, 19.0, 18.5])
    assert mxfp8.rounded(row)[0, :4].tolist() == [448, 16, 20, 18]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_relative_error_is_at_most_a_sixteenth(dtype):
    x = torch.randn(5, 3, 64, dtype=torch.float64).to(dtype)
    found = mxfp8.rounded(x)
    assert found.dtype == dtype
    assert found.shape == x.shape
    # Normal numbers reach down to 448 / 2^15 of the largest of their group.
    large = (
        x.abs()
        > x.unflatten(-1, (2, 32))
        .abs()
        .amax(-1)[..., None]
        .expand(5, 3, 2, 32)
        .flatten(-2)
        * 2.0**-14
    )
    assert ((found - x).abs()[large] <= x.abs()[large] / 16).all()


def test_zero_and_the_smallest_numbers():
    x = torch.zeros(2, 32)
    x[1, 3] = 2.0**-149
    assert torch.equal(mxfp8.rounded(x), torch.zeros(2, 32))
    assert mxfp8.encode(x)[1].tolist() == [[0], [0]]
    assert mxfp8.rounded(torch.full((1, 32), 3.0e38)).isfinite().all()


def test_the_gradient_passes_straight_through():
    x = torch.randn(3, 32, requires_grad=True)
    weight = torch.randn(3, 32)
    (mxfp8.straight_through(x) * weight).sum().backward()
    assert torch.equal(x.grad, weight)
    assert torch.equal(mxfp8.straight_through(x).detach(), mxfp8.rounded(x.detach()))


def test_rows_that_do_not_fit_and_values_without_a_size_are_refused():
    with pytest.raises(
        ShapeError, match="rows of a multiple of 32 values: got 33; pad"
    ):
        mxfp8.rounded(torch.ones(2, 33))
    for value in (torch.inf, torch.nan):
        with pytest.raises(ShapeError, match="MXFP8 holds finite values: got inf or"):
            mxfp8.rounded(torch.full((1, 32), value))


def test_no_rows():
    assert mxfp8.rounded(torch.ones(0, 64)).shape == (0, 64)
