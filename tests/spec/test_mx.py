from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import ball, tensor
from readings.carriers import fractions

from k3.spec import mx, mxfp8

numbers = st.fractions(-1000, 1000, max_denominator=64)
groups = st.lists(numbers, min_size=32, max_size=32)


def test_tables():
    assert [float(mx.e2m1(c)) for c in range(8)] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert mx.e8m0(127) == 1
    assert mx.e8m0(0) == Fraction(1, 2**127)
    for form, least in ((mx.E4M3, Fraction(1, 2**9)), (mx.E5M2, Fraction(1, 2**16))):
        values = [mx.fp8(form, c) for c in range(256)]
        finite = [v for v in values if v is not None]
        assert max(finite) == form.largest == -min(finite)
        assert mx.fp8(form, 1) == least
        assert values[:128].count(None) == (1 if form is mx.E4M3 else 4)


def test_tables_are_those_of_ml_dtypes():
    import ml_dtypes

    for form, dtype in (
        (mx.E4M3, ml_dtypes.float8_e4m3fn),
        (mx.E5M2, ml_dtypes.float8_e5m2),
    ):
        theirs = np.arange(256, dtype=np.uint8).view(dtype).astype(float)
        for code in range(256):
            value = mx.fp8(form, code)
            if value is None:
                assert not np.isfinite(theirs[code])
            else:
                assert float(value) == theirs[code]


def test_encoding_is_that_of_ml_dtypes(rng):
    import ml_dtypes

    x = np.concatenate([rng.normal(size=300) * 2.0 ** rng.integers(-9, 6, 300), [0.0]])
    for form, dtype in (
        (mx.E4M3, ml_dtypes.float8_e4m3fn),
        (mx.E5M2, ml_dtypes.float8_e5m2),
    ):
        theirs = x.astype(dtype).view(np.uint8)
        values = [mx.fp8(form, int(c)) for c in theirs]
        assert [mx.fp8(form, mx.encode_fp8(form, v)) for v in x] == values


@settings(deadline=None, max_examples=40)
@given(numbers)
def test_encoders_are_nearest(x):
    small = x / 100
    gap = abs(mx.e2m1(mx.encode_e2m1(small)) - small)
    assert all(gap <= abs(mx.e2m1(c) - small) for c in range(16))
    for form in (mx.E4M3, mx.E5M2):
        value = mx.fp8(form, mx.encode_fp8(form, x))
        assert value is not None
        for c in range(256):
            other = mx.fp8(form, c)
            assert other is None or abs(value - x) <= abs(other - x)


@pytest.mark.parametrize("cast", [fractions, ball.array, tensor.array, np.asarray])
def test_codes_read_alike(cast):
    halves = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 100.0, -2.6])
    codes = [mx.encode_e2m1(x) for x in cast(halves)]
    assert codes == [0, 2, 2, 4, 4, 6, 6, 7, 13]
    block = mx.encode_block(list(cast(np.linspace(-3, 3, 32))))
    assert block == mx.encode_block([float(x) for x in np.linspace(-3, 3, 32)])


@settings(deadline=None, max_examples=20)
@given(groups)
def test_blocks_decode_within_the_bound(values):
    amax = max(abs(x) for x in values)
    for rule in ("floor", "ceil"):
        block = mx.encode_block(values, rule)
        s = mx.e8m0(block.scale)
        decoded = mx.decode_block(block)
        if rule == "ceil":
            assert amax <= 6 * s
            assert amax == 0 or amax > 3 * s
        assert amax <= 7 * s
        assert all(abs(y) <= 6 * s for y in decoded)
        assert all(abs(y - x) <= s for x, y in zip(values, decoded, strict=True))
        assert mx.decode_block(mx.encode_block(decoded, rule)) == decoded
        assert mx.dot(block, block) == mx.factored_dot(block, block)
        packed = mx.pack(block.codes)
        assert mx.unpack(packed) == list(block.codes)
        assert mx.decode_row(packed, [block.scale]) == decoded


@settings(deadline=None, max_examples=20)
@given(groups)
def test_mxfp8_certificate(values):
    for form in (mx.E4M3, mx.E5M2):
        block = mxfp8.encode_block(form, values)
        s = mx.e8m0(block.scale)
        assert max(abs(x) for x in values) <= form.largest * s
        for x, y in zip(values, mxfp8.decode_block(form, block), strict=True):
            assert abs(y - x) <= mxfp8.error_bound(form, block.scale, x)


def test_extreme_groups():
    assert mx.encode_block([Fraction(0)] * 32) == mx.Block(0, (0,) * 32)
    assert mxfp8.scale_code(mx.E4M3, [Fraction(0)] * 32) == 0
    assert mx.scale_code([Fraction(2) ** 200], "ceil") == 254
    assert mx.scale_code([Fraction(1, 2**200)], "floor") == 0
