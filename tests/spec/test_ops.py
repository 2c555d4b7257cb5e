from fractions import Fraction

import numpy as np
import pytest
from readings.carriers import same

from k3.spec import norm, ops

FUNCTIONS = [ops.exp, ops.tanh, ops.erf, ops.cos, ops.sin, ops.sigmoid, ops.softplus]


@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.__name__)
def test_functions_read_alike(op):
    x = np.array([-3.0, -0.5, 0.0, 1.5, 4.0])
    whole = same(op, x, tolerance=1e-12)
    for i, value in enumerate(x):
        assert op(float(value)) == pytest.approx(whole[i], rel=1e-14)


@pytest.mark.parametrize("op", [ops.log, ops.sqrt], ids=lambda op: op.__name__)
def test_functions_of_positive_numbers_read_alike(op):
    same(op, np.array([0.25, 1.0, 3.0]), tolerance=1e-12)


def test_arrays_read_alike(rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    same(ops.total, x, axis=0, exact=True)
    same(ops.mean, x, keep=True, exact=True)
    same(ops.maximum, x, y, exact=True)
    same(ops.minimum, x, y, exact=True)
    same(lambda a, b: ops.stack([a, b], 1), x, y, exact=True)
    same(lambda a, b: ops.concat([a, b], 1), x, y, exact=True)
    same(lambda a: ops.reshape(ops.transpose(a), 2, 6), x, exact=True)
    same(lambda a, b: ops.outer(a[0], b[1]), x, y, exact=True)
    same(lambda a: ops.zeros(a, (2, 3)), x, exact=True)
    same(lambda a: ops.matrix(a, [[a[0, 0], a[1, 1]]]), x, exact=True)
    same(ops.softmax, x)
    same(ops.silu, x)
    same(lambda a: a * ops.pi(a), x)


def test_softmax_of_large_scores_does_not_overflow():
    assert ops.softmax(np.array([1000.0, 1000.0])) == pytest.approx([0.5, 0.5])
    assert ops.sigmoid(-1000.0) == 0
    assert ops.sigmoid(1000.0) == 1


def test_order_gives_ties_to_the_lower_index():
    assert ops.order(np.array([1.0, 3.0, 3.0, 2.0])) == [1, 2, 3, 0]
    for cast in (lambda v: v, lambda v: np.array([Fraction(x) for x in v])):
        assert ops.order(cast([0, 0, 0])) == [0, 1, 2]


def test_maximum_of_scalars():
    assert ops.maximum(Fraction(1, 2), Fraction(1, 3)) == Fraction(1, 2)
    assert ops.minimum(0.5, 0.25) == 0.25


def test_a_literal_means_its_decimal():
    assert ops.lift(Fraction(0), 1e-5) == Fraction(1, 100_000)
    assert ops.lift(np.array([Fraction(0)]), 0.1) == Fraction(1, 10)
    assert ops.lift(np.array([0.0]), Fraction(1, 4)) == 0.25
    assert ops.lift(3, 2) == 2


def test_rational_points_and_no_others():
    assert ops.exp(Fraction(0)) == 1
    assert ops.sqrt(Fraction(9, 4)) == Fraction(3, 2)
    with pytest.raises(ArithmeticError, match=r"exp\(1\) is not rational: read this"):
        ops.exp(Fraction(1))
    with pytest.raises(ArithmeticError, match=r"sqrt\(2\) is not rational"):
        ops.sqrt(Fraction(2))


def test_unknown_carrier_is_named():
    with pytest.raises(TypeError, match=r"no reading for str: register one with"):
        ops.exp("x")


def test_norms(rng):
    x, w = rng.normal(size=(3, 4)), rng.normal(size=4)
    normed = same(norm.rms_norm, x, w)
    wanted = x[0] / np.sqrt(np.mean(x[0] ** 2) + 1e-5) * w
    np.testing.assert_allclose(normed[0], wanted)
    short = same(norm.l2_norm, x)
    assert (np.linalg.norm(short, axis=1) < 1).all()
    assert (norm.l2_norm(np.zeros(3)) == 0).all()
    same(norm.probabilities, abs(x), exact=True)
