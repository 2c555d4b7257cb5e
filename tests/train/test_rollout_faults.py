"""Environments that fail: the one sample begins anew, or is lost; the rest goes on."""

import pytest

from k3.errors import RequestError
from k3.train.rollout import Piece, RolloutOptions, Rollouts


class Writer:
    """A sampler that ends every turn after two tokens."""

    version = 3

    def __init__(self):
        self.asked, self.active = [], []

    def submit(self, key, tokens, max_tokens, pictures=()):
        self.asked.append((key, list(tokens)))
        self.active.append(key)

    def step(self):
        keys, self.active = self.active, []
        return [Piece(key, (7, 8), (-0.5, -0.25), True) for key in keys]

    def pause(self, key):
        self.active.remove(key)

    def room(self):
        return 100


class Fragile:
    """Two turns, of which some calls fail."""

    def __init__(self, faults):
        self.faults, self.left, self.closed = faults, 2, 0

    def close(self):
        self.closed += 1
        raise OSError("closing fails too")

    def _maybe(self, what):
        if self.faults.pop(what, None):
            raise OSError(f"the sandbox is gone at {what}")

    def begin(self):
        self._maybe("begin")
        return [1]

    def reply(self, written):
        self.left -= 1
        self._maybe("reply")
        return [2] if self.left else None

    def reward(self):
        self._maybe("reward")
        return 0.5


def world(*faults, **options):
    """Rollouts whose environments fail as told, one dict after another, then never."""
    made, told = iter(faults), []

    def more():
        return "p", lambda: Fragile(dict(next(made, {})))

    chosen = RolloutOptions(prompts=1, samples=2, share=1.0, **options)
    return Rollouts(Writer(), more, chosen, told.append), told


@pytest.mark.parametrize("where", ["begin", "reply", "reward"])
def test_only_the_sample_of_the_lost_environment_begins_anew(where):
    rollouts, told = world({where: True})
    ((broken, whole),) = rollouts.iterate()
    assert (broken.failures, whole.failures) == (1, 0)
    assert broken.tokens == whole.tokens == [1, 7, 8, 2, 7, 8]
    assert broken.written == [False, True, True, False, True, True]
    assert (broken.reward, broken.lost) == (0.5, "")
    assert sorted(t.key for t in told) == ["0:p:0", "0:p:1"]


@pytest.mark.parametrize("where", ["begin", "reply", "reward"])
def test_one_that_fails_too_often_is_lost_and_says_why(where):
    rollouts, told = world({where: True}, {}, {where: True}, attempts=2)
    ((broken, whole),) = rollouts.iterate()
    assert broken.lost == f"OSError: the sandbox is gone at {where}"
    assert (broken.reward, broken.num_written) == (0.0, 0)
    assert (whole.reward, whole.lost) == (0.5, "")
    assert len(told) == 2


def test_environments_that_are_left_are_closed():
    rollouts, _ = world({"reply": True})
    samples = rollouts.take()
    broken = samples[0].episode
    rollouts.iterate()
    assert broken.closed == 1
    later = rollouts.take()
    later[0].reward = 1.0
    rollouts.close()
    assert [one.episode.closed for one in later] == [0, 1]


def test_attempts_are_at_least_one():
    with pytest.raises(RequestError, match="attempts must be at least 1: got 0"):
        RolloutOptions(attempts=0)


def test_a_prompt_can_be_taken_before_it_is_needed():
    rollouts, _ = world()
    samples = rollouts.take()
    assert [t.key for t in samples] == ["0:p:0", "0:p:1"]
    assert rollouts.unfinished == samples
    samples[0].reward = 1.0
    ((first, second),) = rollouts.iterate()
    assert first is samples[0]
    assert (first.tokens, second.num_written) == ([], 4)
