import numpy as np
import pytest
from readings.carriers import same

from k3.spec import mx, quantization


def test_fake_quantization_reads_alike(rng):
    W, x = rng.normal(size=(2, 64)), rng.normal(size=64)
    coarse = same(quantization.fake_weights, W, exact=True)
    fine = same(quantization.fake_activation, x, exact=True)
    np.testing.assert_array_equal(quantization.fake_weights(coarse), coarse)
    np.testing.assert_array_equal(quantization.fake_activation(fine), fine)
    y = same(quantization.product, W, x, exact=True)
    np.testing.assert_allclose(y, coarse @ fine)


@pytest.mark.parametrize("form", [mx.E4M3, mx.E5M2])
def test_product_error_is_bounded(rng, form):
    W, x = rng.normal(size=(3, 32)), rng.normal(size=32)
    gap = abs(quantization.product(W, x, form=form) - W @ x)
    for row, error in zip(W, gap, strict=True):
        s = float(mx.e8m0(mx.scale_code(list(row), "ceil")))
        e = abs(quantization.fake_activation(x, form) - x)
        assert error <= (e * 6 * s + abs(x) * s).sum()
