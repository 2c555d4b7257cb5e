"""Held-out success: shares with Wilson's intervals, lengths by task."""

import pytest

from k3.errors import RequestError
from k3.eval import metrics
from k3.post import measure
from k3.post.prompts import Prompts, task_of
from k3.post.recipes import RECIPES
from k3.train.trajectory import Piece, Trajectory


class Silent:
    """An environment that says nothing."""

    def begin(self):
        return [1]

    def reply(self, written):
        return None

    def reward(self):
        return 0.0


def one(reward, length=3, task="calculator", lost=""):
    made = Trajectory("k", f"0:{task}:1", Silent(), reward=reward, lost=lost)
    made.write(Piece("k", (5,) * length, (-1.0,) * length, True), 0)
    return made


def test_success_is_the_share_of_ones():
    found = measure.success([one(1.0), one(0.9, 5), one(0.0, 1), one(1.0)])
    assert (found.count, found.rate, found.tokens) == (4, 0.5, 3.0)
    assert str(found) == "50.0% of 4 (15.0% to 85.0%), 3 tokens each"


def test_nothing_played_is_nothing_measured():
    assert measure.success([]).to_dict() == {
        "count": 0,
        "rate": 0.0,
        "low": 0.0,
        "high": 1.0,
        "tokens": 0.0,
    }


@pytest.mark.parametrize(("right", "count"), [(0, 5), (5, 5), (3, 7), (160, 200)])
def test_intervals_are_those_of_evaluation(right, count):
    assert measure.wilson(right, count) == pytest.approx(metrics.wilson(right, count))


def test_names_of_tasks_may_hold_anything_but_a_colon():
    assert task_of("12:table@react:300") == "table@react"


class Gone(Prompts):
    """Environments that fail in the tasks of these names."""

    gone = ("calculator", "lookup")

    def __call__(self):
        name, make = super().__call__()
        return name, Fallen if name.split(":")[0] in self.gone else make


class Fallen(Silent):
    """An environment that is not there."""

    def begin(self):
        raise OSError("the sandbox is gone")


def test_a_task_whose_samples_are_all_lost_is_said(tiny_tokenizer, monkeypatch):
    recipe = RECIPES["agentic-low"]
    monkeypatch.setattr(measure, "Prompts", Gone)
    found = measure.heldout(Mute(), recipe, tiny_tokenizer, 2)
    assert [s.count for s in found.values()] == [0, 0]
    with pytest.raises(RequestError, match="failures alone in 2 samples of calculat"):
        measure.baseline(Mute(), recipe, tiny_tokenizer, 2)
    monkeypatch.setattr(Gone, "gone", ("lookup",))
    found = measure.heldout(Mute(), recipe, tiny_tokenizer, 2)
    assert {task: s.count for task, s in found.items()} == {
        "calculator": 2,
        "lookup": 0,
    }


class Mute:
    """A sampler whose turns end without a token."""

    version = 0

    def __init__(self):
        self.active = []

    def submit(self, key, tokens, max_tokens, pictures=()):
        self.active.append(key)

    def step(self):
        keys, self.active = self.active, []
        return [Piece(key, (), (), True) for key in keys]

    def pause(self, key):
        self.active.remove(key)

    def room(self):
        return 9


def test_heldout_is_by_task_and_a_budget_needs_words(tiny_tokenizer):
    recipe = RECIPES["agentic-low"]
    found = measure.heldout(Mute(), recipe, tiny_tokenizer, 3)
    assert {task: s.count for task, s in found.items()} == {
        "calculator": 3,
        "lookup": 3,
    }
    assert found["lookup"].rate == 0.0
    with pytest.raises(RequestError, match="no token in 3 samples of calculator"):
        measure.baseline(Mute(), recipe, tiny_tokenizer, 3)


@pytest.fixture(scope="module")
def tiny_tokenizer():
    import k3

    return k3.tokenizer("tiny")
