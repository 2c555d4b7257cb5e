"""Signatures against sets whose similarity is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import minhash


def pair(shared, own, other=None, start=0):
    """Two sets of numbers with so many members in common."""
    items = [str(start + n).encode() for n in range(shared + own + (other or own))]
    both, a, b = items[:shared], items[shared : shared + own], items[shared + own :]
    return minhash.numbers(both + a), minhash.numbers(both + b)


@settings(max_examples=15)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60))
def test_jaccard_is_common_over_all(shared, own, other):
    a, b = pair(shared, own, other)
    want = shared / (shared + own + other)
    assert minhash.jaccard(a, b) == pytest.approx(want)
    assert minhash.jaccard(b, a) == pytest.approx(want)


@settings(max_examples=15)
@given(st.integers(0, 100), st.integers(0, 10**6))
def test_signatures_estimate_it(shared, start):
    """Of 512 entries the standard deviation is at most 0.022."""
    a, b = pair(shared, 50, start=1000 * start)
    signed = [minhash.signature(x, 512) for x in (a, b)]
    assert abs(minhash.similarity(*signed) - shared / (shared + 100)) < 0.11


def test_estimates_are_not_biased():
    found = [
        minhash.similarity(*map(minhash.signature, pair(50, 25, start=1000 * n)))
        for n in range(30)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)
    assert np.std(found) == pytest.approx((0.25 / 128) ** 0.5, rel=0.5)


def test_order_repeats_and_chunks_change_nothing():
    items = [str(n).encode() for n in range(3 * minhash.CHUNK // 2)]
    whole = minhash.signature(minhash.numbers(items))
    again = minhash.signature(minhash.numbers([*reversed(items), *items[:9]]))
    assert (whole == again).all()
    assert len(minhash.numbers(items + items)) == len(items)


def test_empty_sets_are_alike():
    none = minhash.numbers([])
    assert minhash.jaccard(none, none) == 1
    assert minhash.similarity(*map(minhash.signature, (none, none))) == 1
    assert minhash.jaccard(none, minhash.numbers([b"a"])) == 0


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.8, 0.95, 1.0])
def test_bands_find_nine_in_ten_at_the_threshold(threshold):
    count = minhash.bands(threshold)
    assert minhash.ENTRIES % count == 0
    assert minhash.chance(threshold, count) >= 0.9
    assert minhash.chance(1.0, count) == 1
    if count > 1:
        assert minhash.chance(threshold, count // 2) < 0.9


def test_pairs_meet_as_often_as_the_chance_says():
    """Similarity 0.6 in 16 bands of 8: 0.24 of the pairs."""
    met = 0
    for n in range(60):
        a, b = (minhash.signature(x) for x in pair(60, 20, start=1000 * n))
        met += bool(set(minhash.keys(a, 16)) & set(minhash.keys(b, 16)))
    assert met / 60 == pytest.approx(minhash.chance(0.6, 16), abs=0.2)


def test_equal_entries_in_other_bands_do_not_meet():
    signed = np.zeros(128, np.uint64)
    assert len(set(minhash.keys(signed, 16))) == 16
