"""RMSNorm: the logic's function is the spec's, and stays within its bounds."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic import interval
from k3.logic.falsify import call
from k3.proof import rms
from k3.spec import norm


@pytest.mark.parametrize("width", [1, 4, 11])
def test_rms_norm_is_that_of_the_spec_and_bounded(width):
    rng = random.Random(width)
    for _ in range(10):
        xs = [
            Fraction(rng.randrange(-40, 41), rng.randrange(1, 5)) for _ in range(width)
        ]
        w = [Fraction(rng.randrange(-9, 10), 4) for _ in range(width)]
        floats = np.array([float(x) for x in xs]), np.array([float(x) for x in w])
        spec = norm.rms_norm(*floats, norm.EPS)
        for i in range(width):
            ours = interval.enclose(
                call(rms.NORMED, [w[i], xs[i], tuple(xs), norm.EPS])
            )
            middle = float((ours.low + ours.high) / 2)
            assert middle == pytest.approx(spec[i], rel=1e-12, abs=1e-15)
            assert abs(spec[i]) <= abs(floats[1][i]) * math.sqrt(width)
        unit = norm.unit_rms(floats[0], norm.EPS)
        assert sum(unit * unit) < width
