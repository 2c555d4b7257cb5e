"""Native products against float64, dense and MXFP4, alone and in a batch."""

import pytest
import torch
from small import gap

from k3.kernels import mx
from k3.kernels.native import product

SHAPES = [(1, 1), (7, 33), (4, 96), (37, 100), (64, 512)]
TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 6e-3}


def draw(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_a_product_is_that_of_float64(poisoned, dtype, rows, columns):
    x, w = draw(7, columns, dtype=dtype), draw(rows, columns, dtype=dtype)
    want = x.double() @ w.double().T
    got = product.product(x, w)
    assert got.dtype == dtype
    assert gap(got, want) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("rows", "columns"),
    [(3, 32), (37, 160), (5, 384), (9, 96), (64, 256), (11, 288), (6, 672)],
)
@pytest.mark.parametrize("batch", [1, 5, 14, 19])
def test_mxfp4_is_multiplied_as_decoded(poisoned, dtype, rows, columns, batch):
    packed, scale = mx.encode(draw(rows, columns))
    x = draw(batch, columns, dtype=dtype)
    want = x.double() @ mx.decode(packed, scale, torch.float64).T
    got = product.product(x, packed, scale)
    assert gap(got, want) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("rows", "least"), [(4, 0), (32, 3)])
def test_every_code_and_scale_is_exact(dtype, rows, least):
    """x picks each value alone. Products of decoded bf16 take subnormals as 0."""
    packed = torch.arange(256, dtype=torch.uint8).view(16, 16)
    scale = torch.tensor([least, 1 + least, 120, 127, 134, 250, 252, 255] * 2)
    scale = scale.to(torch.uint8)[:, None]
    one = torch.eye(32, dtype=dtype).split(rows)
    got = torch.cat([product.product(x, packed, scale) for x in one]).T
    want = mx.decode(packed, scale, torch.float64).to(dtype)
    # A product with NaN is NaN, also where the value was not picked.
    whole = scale[:, 0] != 255
    assert torch.equal(got[whole], want[whole])
    assert got[~whole].isnan().all()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("columns", [32, 96, 256, 416])
@pytest.mark.parametrize("byte", [0, 255])
def test_the_least_scale_and_none_meet_their_group_alone(dtype, columns, byte):
    """In every group of every row, a zero or NaN scale is that of no other."""
    rows, groups = 7, columns // 32
    packed = torch.full((rows, columns // 2), 0x22, dtype=torch.uint8)
    x = torch.ones(2, columns, dtype=dtype)
    for at in range(rows * groups):
        scale = torch.full((rows, groups), 127, dtype=torch.uint8)
        scale.view(-1)[at] = byte
        got = product.product(x, packed, scale)
        want = torch.full((rows,), float(columns))
        least = columns - 32 + 32 * 2.0**-127
        want[at // groups] = least if byte == 0 else torch.nan
        assert torch.equal(got[1].nan_to_num(-1), want.to(dtype).nan_to_num(-1))
        assert torch.equal(got[0].nan_to_num(-1), got[1].nan_to_num(-1))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [2, 3, 4, 7, 16])
def test_a_row_of_a_batch_is_the_row_alone(dtype, batch):
    x, w = draw(batch, 416, dtype=dtype), draw(13, 416, dtype=dtype)
    # Rows of MXFP4 are decoded ahead from 17 on, and then summed otherwise.
    some = min(batch, 16)
    packed, scale = mx.encode(draw(13, 416))
    got, coded = product.product(x, w), product.product(x[:some], packed, scale)
    for b in range(batch):
        alone = x[b : b + 1]
        assert torch.equal(got[b], product.product(alone, w)[0])
        if b < some:
            assert torch.equal(coded[b], product.product(alone, packed, scale)[0])


@pytest.mark.parametrize("batch", [1, 3, 4, 8, 13])
@pytest.mark.parametrize(("rows", "columns"), [*SHAPES, (9, 48), (6, 600)])
def test_a_stored_matrix_gives_the_bits_of_the_widened_one(batch, rows, columns):
    x, stored = draw(batch, columns), draw(rows, columns, dtype=torch.bfloat16)
    got = product.product(x, stored)
    assert got.dtype == torch.float32
    assert torch.equal(got, product.product(x, stored.float()))


def test_what_lies_behind_a_stored_matrix_is_not_multiplied():
    x, held = draw(4, 49), torch.full((6 * 49 + 64,), torch.nan, dtype=torch.bfloat16)
    held[: 6 * 49] = draw(6 * 49, dtype=torch.bfloat16)
    stored = held[: 6 * 49].view(6, 49)
    assert gap(product.product(x, stored), x.double() @ stored.double().T) < 1e-6


def test_nothing_of_nothing():
    assert product.product(draw(0, 32), draw(5, 32)).shape == (0, 5)
    assert product.product(draw(2, 32), draw(0, 32)).shape == (2, 0)
