"""Quantized experts: the logic's functions are the spec's, and the bounds hold."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic import interval
from k3.logic.falsify import call
from k3.proof import mx as proof_mx
from k3.proof import quantized
from k3.spec import mx, mxfp8, situ

SIZES = [32, 64, 96]


def numbers(rng, size):
    return [
        Fraction(rng.randrange(-400, 401), rng.randrange(1, 90)) for _ in range(size)
    ]


def encoded(rule, values):
    """Decoded values and the scale of each, by blocks of 32."""
    decoded, scales = [], []
    for start in range(0, len(values), 32):
        block = rule(values[start : start + 32])
        decoded += mx.decode_block(block)
        scales += [mx.e8m0(block.scale)] * 32
    return decoded, scales


@pytest.mark.parametrize("size", SIZES)
def test_execution_error_of_the_spec(size):
    rng = random.Random(size)
    for _ in range(5):
        w, x = numbers(rng, size), numbers(rng, size)
        stored, s = encoded(lambda v: mx.encode_block(v, "ceil"), w)
        ours = [call(quantized.MXFP4, [a, b]) for a, b in zip(w, s, strict=True)]
        assert ours == stored
        x2, e = [], []
        for start in range(0, size, 32):
            part = x[start : start + 32]
            block = mxfp8.encode_block(mx.E4M3, part)
            x2 += mxfp8.decode_block(mx.E4M3, block)
            e += [mxfp8.error_bound(mx.E4M3, block.scale, v) for v in part]
        pairs = list(zip(x2, x, e, strict=True))
        assert all(abs(a - b) <= bound for a, b, bound in pairs)
        rows = list(zip(pairs, stored, w, s, strict=True))
        error = abs(sum(a * q - b * v for (a, b, _), q, v, _ in rows))
        assert error <= sum(f * 6 * t + abs(b) * t for (_, b, f), _, _, t in rows)


@pytest.mark.parametrize("size", SIZES)
def test_an_expert_end_to_end(size):
    rng = np.random.default_rng(size)
    for _ in range(10):
        g, u, w = (rng.normal(size=size) * 5 for _ in range(3))
        g2, u2 = (v + rng.uniform(-0.1, 0.1, size) for v in (g, u))
        exact = [Fraction(float(v)) for v in w]
        stored, s = encoded(lambda v: mx.encode_block(v, "ceil"), exact)
        hidden, changed = (situ.situ(a, b) for a, b in ((g, u), (g2, u2)))
        slow = 200 * abs(g2 - g) + 16 * abs(u2 - u)
        assert (abs(changed - hidden) <= slow).all()
        scales = np.array([float(v) for v in s])
        weights = np.array([float(v) for v in stored])
        x2 = changed + rng.uniform(-0.01, 0.01, size)
        error = abs(x2 @ weights - hidden @ w)
        assert error <= ((slow + 0.01) * 6 * scales + 100 * scales).sum()


def test_situ_is_that_of_the_spec():
    rng = random.Random(0)
    for _ in range(20):
        g, u = numbers(rng, 2)
        ours = interval.enclose(call(quantized.SITU, [Fraction(4), Fraction(25), g, u]))
        spec = float(situ.situ(np.float64(g), np.float64(u)))
        assert float(ours.low) == pytest.approx(spec, rel=1e-12, abs=1e-15)
        assert call(proof_mx.E2M1, [Fraction(5, 2)]) == 2
