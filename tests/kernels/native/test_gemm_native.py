"""Products of many rows natively against float64, from fp32 and bf16 matrices."""

import pytest
import torch
from small import gap

from k3.kernels import choose
from k3.kernels.native import gemm, library

SHAPES = [
    *[(1, 1, 1), (5, 3, 7), (13, 33, 100), (100, 70, 31), (24, 64, 512)],
    *[(25, 65, 1030), (540, 33, 48)],
]
WEIGHTS = (torch.float32, torch.bfloat16)


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", WEIGHTS)
@pytest.mark.parametrize(("n", "rows", "columns"), SHAPES)
def test_a_product_is_that_of_float64(poisoned, n, rows, columns, dtype):
    x, w = draw(n, columns), draw(rows, columns, seed=1, dtype=dtype)
    (got,) = gemm.products(x, [w])
    assert got.dtype == torch.float32
    assert gap(got, x.double() @ w.double().T) < 2e-6


def test_several_matrices_share_their_rows(poisoned):
    x, sizes = draw(37, 90), (1, 40, 0, 129)
    held = [draw(rows, 90, seed=rows, dtype=WEIGHTS[rows % 2]) for rows in sizes]
    got = gemm.products(x, held)
    assert [y.shape for y in got] == [(37, rows) for rows in sizes]
    for y, w in zip(got, held, strict=True):
        assert torch.equal(y, gemm.products(x, [w])[0])


@pytest.mark.parametrize(("n", "rows", "columns"), [(0, 5, 7), (5, 0, 7), (5, 7, 0)])
def test_nothing_is_multiplied(poisoned, n, rows, columns):
    (got,) = gemm.products(draw(n, columns), [draw(rows, columns)])
    assert torch.equal(got, torch.zeros(n, rows))


def test_a_row_has_its_bits_wherever_it_lies_and_by_any_number_of_threads():
    x, w = draw(75, 600), draw(50, 600, seed=1)
    (whole,) = gemm.products(x, [w])
    for first, last in ((0, 1), (3, 17), (70, 75)):
        assert torch.equal(gemm.products(x[first:last], [w])[0], whole[first:last])
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert torch.equal(gemm.products(x, [w])[0], whole)
    finally:
        torch.set_num_threads(before)


def test_infinity_and_nan_stay_in_their_rows_and_columns():
    x, w = draw(13, 40), draw(35, 40, seed=1)
    x[3, 5], w[34, 7] = torch.inf, torch.nan
    (got,) = gemm.products(x, [w])
    assert got[:, 34].isnan().all()
    assert not got[3, :34].isfinite().any()
    got[3], got[:, 34] = 0, 0
    assert got.isfinite().all()


def test_few_rows_and_the_lowest_level_stay_with_pytorch(monkeypatch):
    x, w = draw(choose.MANY_ROWS, 8), draw(5, 8)
    assert choose.packs(x, w) == (library.level() != "portable")
    assert not choose.packs(x[1:], w)
    assert not choose.packs(x.double(), w)
    assert not choose.packs(x, w.requires_grad_())
    monkeypatch.setattr(library, "level", lambda: "portable")
    assert not choose.packs(x, w.detach())
