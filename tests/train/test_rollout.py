"""Partial rollouts: who is kept, who goes first, and what is recorded of each token."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.spec import rl as spec
from k3.train.rollout import Piece, RolloutOptions, Rollouts


class Turns:
    """An episode of given turn lengths; the environment says its number after each."""

    def __init__(self, number, lengths):
        self.number, self.left, self.heard = number, list(lengths), []

    def begin(self):
        return [1000 + self.number]

    def reply(self, written):
        self.heard.append(list(written))
        self.left.pop(0)
        return [2000 + self.number] if self.left else None

    def reward(self):
        return 1.0


class Clock:
    """A sampler that writes one token a step; a turn ends after the episode's length.

    It goes on from where a pause left off only if it still has the cache.
    """

    def __init__(self, seats=1000):
        self.version, self.seats = 1, seats
        self.active, self.log, self.paused = {}, [], set()
        self.ends = {}

    def submit(self, key, tokens, max_tokens, pictures=()):
        assert len(self.active) < self.seats or not self.active
        self.log.append((key, key in self.paused, len(tokens)))
        self.active[key] = [list(tokens), max_tokens]

    def step(self):
        pieces = []
        for key, state in list(self.active.items()):
            token = len(state[0])
            state[0].append(token)
            state[1] -= 1
            self.ends[key] = self.ends.get(key, 0) + 1
            done = self.ends[key] >= self.length(key) or state[1] == 0
            pieces.append(Piece(key, (token,), (-float(self.version),), done))
            if done:
                del self.active[key]
                self.ends[key] = 0
        return pieces

    def pause(self, key):
        del self.active[key]
        self.paused.add(key)

    def room(self):
        return self.seats - len(self.active)


def world(lengths, seats=1000, **options):
    """Rollouts whose i-th sample has the i-th list of turn lengths, over and over."""
    made, episodes = Clock(seats), []

    def more():
        def make():
            episode = Turns(len(episodes), lengths[len(episodes) % len(lengths)])
            episodes.append(episode)
            return episode

        return f"p{len(episodes)}", make

    rollouts = Rollouts(made, more, RolloutOptions(**options))

    def length(key):
        (found,) = [t for g in rollouts.groups.values() for t in g if t.key == key]
        return found.episode.left[0]

    made.length = length
    return rollouts, made, episodes


def test_an_iteration_ends_at_the_share_and_keeps_the_rest():
    rollouts, clock, _ = world([[2], [2], [2], [50]], prompts=2, samples=2, share=0.75)
    ready = rollouts.iterate()
    assert [[t.num_written for t in group] for group in ready] == [[2, 2]]
    (slow,) = rollouts.unfinished
    assert slow.iterations == 1
    assert slow.num_written == 2
    assert clock.paused == {slow.key}
    assert clock.active == {}
    clock.version = 2
    first = len(clock.log)
    rollouts.iterate()
    key, resumed, length = clock.log[first]
    assert (key, resumed, length) == (slow.key, True, 3)
    assert slow.versions[:5] == [0, 1, 1, 2, 2]
    assert slow.staleness(2) == pytest.approx(2 / slow.num_written)


def test_tokens_of_the_environment_are_not_the_policys():
    rollouts, _, episodes = world([[2, 3]], prompts=1, samples=1, share=1.0)
    ((one,),) = rollouts.iterate()
    assert one.tokens == [1000, 1, 2, 2000, 4, 5, 6]
    assert one.written == [False, True, True, False, True, True, True]
    assert one.logprobs == [0.0, -1.0, -1.0, 0.0, -1.0, -1.0, -1.0]
    assert episodes[0].heard == [[1, 2], [4, 5, 6]]
    assert (one.reward, one.done) == (1.0, True)


def test_the_limit_is_of_all_that_one_writes():
    rollouts, _, _ = world([[3, 50]], prompts=1, samples=1, share=1.0, max_tokens=10)
    ((one,),) = rollouts.iterate()
    assert one.num_written == 10
    assert one.done


def test_memory_throttles_and_the_oldest_go_first():
    rollouts, clock, _ = world([[3]], seats=2, prompts=3, samples=2, share=1.0)
    ready = rollouts.iterate()
    assert len(ready) == 3
    assert [key for key, _, _ in clock.log] == [t.key for group in ready for t in group]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=7
    ),
    st.integers(1, 4),
    st.integers(1, 3),
    st.floats(0.05, 1.0),
    st.integers(1, 5),
)
def test_no_finished_sample_is_ever_lost(lengths, prompts, samples, share, seats):
    rollouts, _, episodes = world(
        lengths, seats, prompts=prompts, samples=samples, share=share
    )
    seen = []
    for _ in range(4):
        for group in rollouts.iterate():
            assert len(group) == samples
            assert all(t.done for t in group)
            seen += [t.episode.number for t in group]
    assert len(seen) == len(set(seen))
    kept = [t.episode.number for g in rollouts.groups.values() for t in g]
    assert sorted(seen + kept) == list(range(len(episodes)))


@given(st.integers(1, 20), st.integers(1, 8), st.floats(0.01, 1.0))
def test_enough_is_where_the_spec_stops(prompts, samples, share):
    enough = RolloutOptions(prompts=prompts, samples=samples, share=share).enough
    assert spec.rollout_ends(enough, prompts, samples, share)
    assert not spec.rollout_ends(enough - 1, prompts, samples, share)
    assert enough <= math.ceil(prompts * samples)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"prompts": 0}, "prompts must be at least 1: got 0"),
        ({"share": 0.0}, "share must be above 0 and at most 1"),
        ({"share": 1.5}, "share must be above 0 and at most 1: got 1.5"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(RequestError, match=sentence):
        RolloutOptions(**options)
