"""Kneser-Ney sums to one and profits from context; xz is charged for new text only."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.train import baselines
from k3.train.baselines import KneserNey

TEXT = b"the cat sat on the mat. the hat of the cat sat on that mat. " * 3
TEXT += bytes(range(97, 123))


def total(model, context):
    every = (model.probabilities(bytes([b]), context)[0] for b in range(256))
    return sum(every)


@pytest.mark.parametrize("order", [1, 2, 5, 6, 7])
@pytest.mark.parametrize("context", [b"", b"t", b"the cat", b"\xff\xff\xff", b"zzthe "])
def test_probabilities_sum_to_one(order, context):
    assert total(KneserNey.fit(TEXT, order), context) == pytest.approx(1, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(text=st.binary(min_size=1, max_size=80), context=st.binary(max_size=8))
def test_any_text_and_context_sum_to_one(text, context):
    assert total(KneserNey.fit(text, 4), context) == pytest.approx(1, abs=1e-12)


def test_longer_context_is_worth_its_counts():
    seen = b"on that mat. the cat sat on the hat. the mat sat"
    bits = [KneserNey.fit(TEXT, order).bits_per_byte(seen) for order in (1, 2, 3, 5)]
    assert bits == sorted(bits, reverse=True)
    assert bits[-1] < bits[0] / 2


def test_lower_orders_count_what_comes_before_and_not_how_often():
    # "s" follows only "u"; "e" follows three bytes, but less often in all.
    model = KneserNey.fit(b"us" * 20 + b"aebece", 2)
    fresh = [model.probabilities(c, b"q")[0] for c in (b"s", b"e")]
    assert fresh[1] > fresh[0]


def test_context_reaches_back_as_far_as_the_order():
    model = KneserNey.fit(TEXT, 3)
    whole = model.probabilities(b"the cat")
    tail = model.probabilities(b"cat", b"the ")
    np.testing.assert_array_equal(whole[4:], tail)


def test_discounts_of_a_hand_counted_table():
    # n1..n4 = 4, 2, 1, 1: Y = 1/2, D1 = 1 - 2/4, D2 = 2 - 3/4, D3 = 3 - 4/2.
    counts = np.array([1, 1, 1, 1, 2, 2, 3, 4])
    found = baselines.estimate_discounts(counts)
    np.testing.assert_allclose(found, [0, 0.5, 1.25, 1.0])


def test_discounts_fall_back_where_a_count_is_missing():
    found = baselines.estimate_discounts(np.array([1, 1, 9]))
    np.testing.assert_array_equal(found, [0, 0.5, 1, 1.5])


def test_discounts_fall_back_where_one_would_be_zero():
    # n1..n4 = 4, 2, 1, 3: D3 = 3 - 4 (1/2) 3 is negative.
    found = baselines.estimate_discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4, 4, 4]))
    np.testing.assert_array_equal(found, [0, 0.5, 1, 1.5])


@pytest.mark.parametrize("order", [0, 8])
def test_order_is_bounded(order):
    with pytest.raises(ValueError, match="order must be 1 to 7: got"):
        KneserNey.fit(TEXT, order)


def test_xz_pays_little_for_text_it_has_seen():
    rng = np.random.default_rng(0)
    seen = rng.integers(0, 256, 4000, dtype=np.uint8).tobytes()
    new = rng.integers(0, 256, 4000, dtype=np.uint8).tobytes()
    after, alone = baselines.xz_bits_per_byte(seen, seen[:3000])
    assert after < 0.3
    assert alone > 8
    assert baselines.xz_bits_per_byte(seen, new)[0] > 7.9
