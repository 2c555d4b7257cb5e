"""Permutations without a table, and numbers that hang together with nothing."""

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import order


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 63, 64, 65, 100])
@pytest.mark.parametrize("seed", [0, -1])
def test_a_permutation_of_any_size(size, seed):
    assert sorted(order.place(i, size, seed) for i in range(size)) == list(range(size))


@settings(max_examples=20)
@given(st.integers(2, 2**45), st.data(), st.integers(0, 2**63))
def test_large_sizes_need_no_table(size, data, seed):
    a, b = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    there = order.place(a, size, seed), order.place(b, size, seed)
    assert all(0 <= place < size for place in there)
    assert (there[0] == there[1]) == (a == b)


def test_each_epoch_holds_everything_in_an_order_of_its_own():
    epochs = [[order.in_epochs(e * 63 + i, 63, 5) for i in range(63)] for e in range(3)]
    assert all(sorted(epoch) == list(range(63)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert epochs[0] != sorted(epochs[0])


def test_seeds_give_different_orders():
    orders = {tuple(order.place(i, 20, seed) for i in range(20)) for seed in range(20)}
    assert len(orders) == 20


def test_first_places_are_uniform():
    counts = [0] * 5
    for seed in range(500):
        counts[order.place(0, 5, seed)] += 1
    assert all(abs(count - 100) < 45 for count in counts)


def test_an_order_stays_what_it_was():
    assert order.mix(1, 2, 3) == 16577184890659451636
    assert [order.place(i, 7, 1) for i in range(7)] == [4, 1, 6, 3, 0, 5, 2]


def test_numbers_and_their_order_count():
    seen = {order.mix(), order.mix(0), order.mix(0, 0), order.mix(0, 1), order.mix(1)}
    assert len(seen | {order.mix(1, 0), order.mix(-1)}) == 7


def test_fractions_are_spread_over_the_interval():
    found = [order.fraction(3, n) for n in range(2000)]
    assert all(0 <= x < 1 for x in found)
    assert abs(statistics.mean(found) - 0.5) < 0.03
    assert abs(statistics.pvariance(found) - 1 / 12) < 0.006
