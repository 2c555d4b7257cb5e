"""The MXFP8 encoder: the logic's magnitude is the spec's, within the certificate."""

import random
from fractions import Fraction

import pytest

from k3.logic.falsify import call
from k3.proof import mxfp8
from k3.spec import mx
from k3.spec import mxfp8 as spec

FORMATS = {"E4M3": mx.E4M3, "E5M2": mx.E5M2}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("scale", [100, 127, 140])
def test_the_encoder_is_that_of_the_spec(name, scale):
    form, (bits, least) = FORMATS[name], mxfp8.FORMATS[name]
    assert (form.mantissa, Fraction(2) ** (1 - form.bias - form.mantissa)) == (
        bits,
        least,
    )
    rng, s = random.Random(scale), mx.e8m0(scale)
    for _ in range(200):
        y = Fraction(rng.randrange(1, 10**6), rng.randrange(1, 10**6)) * Fraction(
            2
        ) ** rng.randrange(-14, 8)
        if y > form.largest:
            continue
        step = max(Fraction(2) ** (mx.floor_log2(y) - bits), least)
        ours = call(mxfp8.ENCODED, [y * s, s, step, 2 ** (bits + 1)])
        found = mx.fp8(form, mx.encode_fp8(form, y))
        tie = (y / step * 2).denominator == 1 and (y / step).denominator == 2
        assert tie or ours == s * found
        bound = spec.error_bound(form, scale, y * s)
        assert abs(ours - y * s) <= bound
        assert abs(s * found - y * s) <= bound


@pytest.mark.parametrize("n", [1, 4, 16])
def test_nearest_steps(n):
    for k in range(16 * n + 1):
        z = Fraction(k, 16)
        at = call(mxfp8.NEAREST, [z, n])
        assert 0 <= at <= n
        assert abs(at - z) <= Fraction(1, 2)
