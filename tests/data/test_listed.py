"""Rows that are packed once and read for ever."""

import collections

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data.examples import Example
from k3.data.listed import Listed, best_fit
from k3.data.mixture import RowSource
from k3.errors import RequestError


def examples(*lengths):
    return [
        Example(
            ids=torch.full((n,), place),
            learned=torch.zeros(n, dtype=torch.bool),
            domain="d",
        )
        for place, n in enumerate(lengths)
    ]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_rows_hold_everything_once_and_are_half_full(lengths):
    rows = best_fit(lengths, 20)
    assert sorted(place for row in rows for place in row) == list(range(len(lengths)))
    sums = [sum(lengths[place] for place in row) for row in rows]
    assert max(sums) <= 20
    assert sum(s <= 10 for s in sums) <= 1


def test_the_fullest_row_that_has_room_is_taken():
    assert best_fit([7, 5, 4, 3, 1], 10) == [[0, 3], [1, 2, 4]]


def test_an_epoch_reads_every_row_once():
    source = Listed("d", examples(7, 5, 4, 3, 1, 10, 6))
    assert isinstance(source, RowSource)
    assert (source.tokens, source.rows_per_epoch(10)) == (36, 4)
    orders = set()
    for epoch in range(5):
        rows = [source.row(4 * epoch + i, 10) for i in range(4)]
        seen = collections.Counter(int(e.ids[0]) for row in rows for e in row)
        assert seen == collections.Counter(range(7))
        orders.add(tuple(len(row) for row in rows))
    assert len(orders) > 1
    assert {int(source.example(i).ids[0]) for i in range(7)} == set(range(7))


def test_what_does_not_fit_is_refused():
    with pytest.raises(RequestError, match="one has 5 tokens of 4; raise tokens"):
        Listed("d", examples(3, 5)).row(0, 4)
    with pytest.raises(RequestError, match="d got none"):
        Listed("d", [])
