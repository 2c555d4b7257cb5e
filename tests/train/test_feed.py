"""Rows are those of the position, whoever reads them and when."""

import threading

import pytest
import torch

from k3.data import packing
from k3.data.examples import Example
from k3.train.feed import Feed
from k3.train.stages import Stage

STAGE = Stage(fraction=1.0, tokens=4, batch=3)


class Numbers:
    """Row n is four times n."""

    domains = ("count",)

    def __init__(self, tokens):
        self.tokens, self.read, self.threads = tokens, [], set()

    def row(self, number):
        self.read.append(number)
        self.threads.add(threading.current_thread().name)
        if number == 99:
            raise ValueError("row 99")
        ids = torch.full((self.tokens,), number)
        learned = torch.arange(self.tokens) > 0
        return packing.pack(
            [Example(ids=ids, learned=learned, domain="count")], self.tokens, 0
        )


@pytest.fixture
def made():
    return {}


@pytest.fixture
def make(made):
    def numbers(tokens):
        assert tokens not in made, "once a length"
        made[tokens] = Numbers(tokens)
        return made[tokens]

    return numbers


def first(rows):
    return [int(row.ids[0, 0]) for row in rows]


def test_rows_follow_the_position(make):
    with Feed(make) as feed:
        assert first(feed.take(6, STAGE)) == [6, 7, 8]
        assert feed.domains == ("count",)


def test_what_was_prepared_is_read_once_and_elsewhere(make, made):
    with Feed(make) as feed:
        feed.take(0, STAGE)
        feed.prepare(3, STAGE)
        assert first(feed.take(3, STAGE)) == [3, 4, 5]
        assert made[4].read == [0, 1, 2, 3, 4, 5]
        assert len(made[4].threads) == 2


def test_another_position_or_stage_than_prepared_is_read_anew(make, made):
    longer = Stage(fraction=1.0, tokens=6, batch=2)
    with Feed(make) as feed:
        feed.prepare(3, STAGE)
        assert first(feed.take(6, STAGE)) == [6, 7, 8]
        feed.prepare(9, STAGE)
        rows = feed.take(9, longer)
    assert first(rows) == [9, 10]
    assert [len(row) for row in rows] == [6, 6]


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_out_a_step(make, world):
    found = []
    for rank in range(world):
        with Feed(Numbers, rank=rank, world=world) as feed:
            found += first(feed.take(6, STAGE))
    assert sorted(found) == [6, 7, 8]


def test_a_fault_while_preparing_is_raised_when_taken(make):
    with Feed(make) as feed:
        feed.prepare(97, STAGE)
        with pytest.raises(ValueError, match="row 99"):
            feed.take(97, STAGE)
