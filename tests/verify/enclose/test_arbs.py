"""Arb as a carrier of the spec: products, kept matrices, constants, order."""

import sys

import numpy as np
import pytest

from k3.errors import RequestError
from k3.spec import norm, ops
from k3.verify.enclose import arbs

A = np.arange(15.0).reshape(3, 5) / 8 - 1
B = np.arange(10.0).reshape(5, 2) / 4 - 1


@pytest.mark.parametrize(
    ("left", "right"), [(A, B), (A, B[:, 0]), (A[0], B), (A[0], B[:, 0])]
)
def test_products_of_vectors_and_matrices(left, right):
    with arbs.precision(128):
        got = arbs.arbs(left) @ arbs.arbs(right)
        assert np.array_equal(arbs.middle(got), left @ right)
        assert np.shape(got) == np.shape(left @ right)


def test_a_plain_object_array_on_either_side():
    with arbs.precision(128):
        plain = np.asarray(arbs.arbs(B), dtype=object).view(np.ndarray)
        assert np.array_equal(arbs.middle(arbs.arbs(A) @ plain), A @ B)
        plain = np.asarray(arbs.arbs(A), dtype=object).view(np.ndarray)
        assert np.array_equal(arbs.middle(plain @ arbs.arbs(B)), A @ B)


def test_a_kept_matrix_and_its_transpose_multiply_the_same():
    with arbs.precision(128):
        kept = arbs.keep(arbs.arbs(A))
        assert np.array_equal(arbs.middle(kept @ arbs.arbs(B)), A @ B)
        assert np.array_equal(arbs.middle(arbs.arbs(B.T) @ kept.T), B.T @ A.T)
        # A part of it is no longer what was kept.
        assert np.array_equal(arbs.middle(kept[:2] @ arbs.arbs(B)), A[:2] @ B)
        assert np.array_equal(arbs.middle((kept * 2) @ arbs.arbs(B)), 2 * A @ B)


def test_constants_are_the_decimals_they_are_written_as():
    with arbs.precision(200):
        like = arbs.arbs([1.0])
        tenth = ops.lift(like, 0.1)
        assert abs(float((tenth * 10 - 1).mid())) < 1e-50
        assert arbs.middle(ops.zeros(like, (2, 3))).shape == (2, 3)


def test_order_is_exact_beyond_floats():
    with arbs.precision(200):
        x = arbs.arbs([1.0, 1.0, 1.0])
        x[1] = x[1] + ops.lift(x, 1e-30)
        assert ops.order(x) == [1, 0, 2]


def test_a_spec_function_has_small_radii():
    with arbs.precision(200):
        y = norm.rms_norm(arbs.arbs(A), arbs.arbs(np.ones(5)))
        want = A / np.sqrt((A * A).mean(-1, keepdims=True) + 1e-5)
        assert np.allclose(arbs.middle(y), want, rtol=1e-14)
        assert 0 < arbs.radius(y).max() < 1e-50


def test_precision_is_put_back():
    import flint

    before = flint.ctx.prec
    with arbs.precision(99):
        assert flint.ctx.prec == 99
    assert flint.ctx.prec == before
    with pytest.raises(RequestError), arbs.precision(99):
        raise RequestError("stop")
    assert flint.ctx.prec == before


def test_a_missing_library_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(RequestError, match=r"pip install 'k3\[prove\]'"):
        arbs.arbs([1.0])
