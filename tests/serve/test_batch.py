"""Rows of states: who sits where as sequences come and go."""

import random

import pytest

from k3.serve import batch
from k3.serve.batch import Batch


class State:
    """A state as far as a batch looks at one: a name for each row."""

    copies = 0

    def __init__(self, names):
        self.names, self.batch = list(names), len(names)

    def select(self, rows):
        State.copies += 1
        return State([self.names[row] for row in rows])

    @staticmethod
    def join(states):
        State.copies += 1
        return State([name for state in states for name in state.names])


@pytest.fixture(autouse=True)
def stubs(monkeypatch):
    monkeypatch.setattr(batch, "DecodeState", State)
    State.copies = 0


def check(made, most):
    parts = made.settle(most)
    assert all(part.sequences == part.state.names for part in parts)
    assert all(1 <= len(part.rows) <= most for part in parts)
    return [name for part in parts for name in part.sequences]


@pytest.mark.parametrize("seed", range(10))
def test_every_row_stays_with_its_sequence(seed):
    draw, made, there = random.Random(seed), Batch(), set()
    most = draw.choice([1, 3, 16])
    for name in range(1, 100):
        count = draw.randint(1, 5)
        names = [f"{name}.{i}" for i in range(count)]
        made.add(names, State(names))
        there |= set(names)
        for gone in draw.sample(sorted(there), min(len(there), draw.randint(0, 4))):
            made.drop(gone)
            there.remove(gone)
        if draw.random() < 0.7:
            assert set(check(made, most)) == there
        assert set(made.rows) == there


def test_nothing_is_copied_while_the_set_stays():
    made, names = Batch(), ["a", "b", "c", "d"]
    for name in names:
        made.add([name], State([name]))
    check(made, 3)
    before = State.copies
    check(made, 3)
    assert State.copies == before
    made.drop(names[3])
    assert check(made, 3) == names[:3]
    assert State.copies == before


def test_an_empty_batch_holds_nothing():
    made = Batch()
    name = "a"
    made.add([name], State([name]))
    made.drop(name)
    assert made.parts == []
    assert made.settle(3) == []
