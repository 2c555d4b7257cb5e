"""The planner's guarantees under any load, and that what is sent is what arrives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import ConfigError, ShapeError
from k3.parallel import moonep


@st.composite
def loads(draw):
    """(counts [R E] of equally many slots a rank, R)."""
    ranks, per = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    slots = draw(st.integers(0, 12))
    chosen = st.lists(st.integers(0, ranks * per - 1), min_size=slots, max_size=slots)
    rows = [
        np.bincount(np.array(draw(chosen), dtype=int), minlength=ranks * per)
        for _ in range(ranks)
    ]
    return np.stack(rows), ranks


@settings(max_examples=40)
@given(loads())
def test_every_rank_computes_equally_many_and_fetches_few_from_one(given_):
    counts, ranks = given_
    planned = moonep.plan(counts.sum(0), ranks)
    assert (planned >= 0).all()
    assert (planned.sum(0) == counts.sum(0)).all()
    assert (planned.sum(1) == counts.sum() // ranks).all()
    home = moonep.homes(counts.shape[1], ranks)
    for rank in range(ranks):
        found = moonep.fetched(planned, rank)
        assert len(found) <= moonep.bound(counts.shape[1], ranks)
        assert len(set(home[found])) <= 1


@settings(max_examples=40)
@given(loads())
def test_what_is_sent_arrives_and_own_slots_stay(given_):
    counts, ranks = given_
    planned = moonep.plan(counts.sum(0), ranks)
    sent = np.stack([moonep.sends(counts, planned, r) for r in range(ranks)])
    came = np.stack([moonep.receives(counts, planned, r) for r in range(ranks)])
    assert (sent.transpose(1, 0, 2) == came).all()
    assert (sent.sum(1) == counts).all()
    assert (came.sum(1) == planned).all()
    own = sent[np.arange(ranks), np.arange(ranks)]
    assert (own == np.minimum(counts, planned)).all()


def test_all_slots_on_one_rank_reach_the_tight_bound():
    # 8 experts over 4 ranks; rank 0's two hold everything: each other rank fetches.
    planned = moonep.plan([20, 20, 0, 0, 0, 0, 0, 0], 4)
    assert planned.sum(1).tolist() == [10, 10, 10, 10]
    most = max(len(moonep.fetched(planned, r)) for r in range(4))
    assert most == 1 <= moonep.tight_bound(8, 4) == 2 == moonep.bound(8, 4)


def test_equal_loads_move_nothing():
    planned = moonep.plan([3] * 6, 3)
    assert not any(len(moonep.fetched(planned, r)) for r in range(3))


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(ConfigError, match=r"expert must divide .* 2 ranks for 3 exp"):
        moonep.plan([1, 1, 2], 2)
    with pytest.raises(ShapeError, match=r"equally many slots .* got 3 slots for 2"):
        moonep.plan([1, 2], 2)
    with pytest.raises(ShapeError, match="equally many slots"):
        moonep.plan([-1, 3], 2)
