"""Admission by class, as numbers: no model is run."""

import random

import pytest

from k3.serve.scheduler import HEADROOM_TOKENS, Lane


class Stub:
    """As much of a sequence as a lane looks at."""

    def __init__(self, order, length, most=1000):
        self.order, self.length, self.most = (order, 0), length, most
        self.restarts = 0

    def __len__(self):
        return self.length

    def restart(self):
        self.restarts += 1


class State:
    """A state of so many rows."""

    def __init__(self, batch):
        self.batch = batch


def lane(max_bytes=10**9, max_seqs=4):
    return Lane(
        max_seqs=max_seqs,
        max_tokens=10,
        max_bytes=max_bytes,
        bytes_at=lambda tokens: 100 + tokens,
    )


def test_the_first_to_come_are_let_in_and_nobody_overtakes():
    made = lane(max_bytes=2 * (100 + 20 + HEADROOM_TOKENS))
    one, big, small = Stub(1, 20), Stub(2, 200), Stub(3, 20)
    for each in (big, small, one):
        made.queue(each)
    made.admit()
    assert made.prefilling == [one]
    assert made.waiting == [big, small]
    made.remove(big)
    made.admit()
    assert made.prefilling == [one, small]


def test_one_alone_is_always_let_in():
    made = lane(max_bytes=1)
    made.queue(Stub(1, 500))
    made.admit()
    assert len(made.prefilling) == 1


def test_headroom_is_no_more_than_a_sequence_may_still_get():
    made = lane(max_bytes=2 * (100 + 21))
    made.queue(Stub(1, 20, most=21))
    made.queue(Stub(2, 20, most=21))
    made.admit()
    assert len(made.prefilling) == 2


def test_a_batch_is_counted_as_its_longest_row():
    made = lane()
    assert made.need([Stub(1, 10), Stub(2, 50)], 1) == 2 * 151
    assert made.need([], 1) == 0


def test_the_last_to_come_goes_back_and_keeps_its_place():
    made = lane(max_bytes=3 * 150)
    rows = [Stub(order, 48) for order in (5, 2, 9, 3)]
    made.batch.add(rows, State(4))
    made.queue(Stub(12, 5))
    assert [s.order[0] for s in made.preempt()] == [9]
    assert [s.order[0] for s in made.running] == [5, 2, 3]
    assert [s.order[0] for s in made.waiting] == [9, 12]
    assert rows[2].restarts == 1
    assert made.prompt_tokens() == 7


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_budgets_hold_and_all_get_their_turn(seed):
    draw = random.Random(seed)
    made, done, came = lane(max_bytes=600, max_seqs=3), set(), 0
    for _ in range(2000):
        if came < 25 and draw.random() < 0.3:
            length = draw.randint(1, 60)
            made.queue(Stub(came, length, most=length + draw.randint(1, 200)))
            came += 1
        made.preempt()
        made.admit()
        active = made.active
        assert len(active) <= 3
        assert len(active) < 2 or made.need(active, 1) <= 600
        assert bool(active) == bool(active or made.waiting)
        for s in list(made.prefilling):
            made.remove(s)
            made.batch.add([s], State(1))
        for s in made.running:
            s.length += 1
            if s.length >= s.most:
                made.remove(s)
                done.add(s.order[0])
    assert done == set(range(25))
