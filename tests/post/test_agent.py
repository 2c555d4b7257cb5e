"""An agent over a speaker: turns, seeds, tokens, and a context that fills."""

import itertools

import pytest

from k3.data.xtml import Message, RenderOptions, ToolCall
from k3.envs import environment
from k3.errors import RequestError
from k3.post import context
from k3.post.agent import SpeakingAgent
from k3.post.speaker import ContextFull, Sampling, Spoken, Usage

WANTED = RenderOptions()


class Counter:
    """An environment of so many calls; its results are as long as they are told."""

    wanted = WANTED

    def __init__(self, calls):
        self.calls, self.turn, self.closed = calls, 0, False

    def begin(self):
        return [{"role": "user", "content": "Count."}]

    def reply(self, message):
        if not message.tool_calls:
            return None
        self.turn += 1
        return environment.results(self.turn - 1, [f"result {self.turn}"])

    def score(self):
        return float(self.turn == self.calls)

    def close(self):
        self.closed = True


class Room:
    """A speaker with room for so many messages; it calls until it is told to stop."""

    def __init__(self, room, calls):
        self.room, self.calls, self.seen = room, calls, []

    def answer(self, messages, wanted, sampling):
        shown = [m for m in messages if m["content"] != context.HIDDEN]
        if len(shown) > self.room:
            raise ContextFull("full")
        self.seen.append((list(messages), sampling.seed))
        done = len(self.seen) > self.calls
        calls = () if done else (ToolCall("f", "{}"),)
        message = Message(None, "done" if done else "", calls, "stop")
        return Spoken(message=message, usage=Usage(read=5, cached=1, written=2))


def test_it_plays_an_environment_and_counts():
    speaker, counter = Room(99, 3), Counter(3)
    agent = SpeakingAgent(speaker, counter.wanted, Sampling(seed=7))
    assert environment.play(counter, agent) == 1.0
    assert counter.closed
    assert (agent.turns, agent.usage) == (4, Usage(read=20, cached=4, written=8))
    seeds = [seed for _, seed in speaker.seen]
    assert seeds[0] == 7
    assert len(set(seeds)) == 4


def test_a_full_context_ends_it_unless_something_may_go():
    agent = SpeakingAgent(Room(4, 5), WANTED, Sampling())
    with pytest.raises(ContextFull, match="full"):
        environment.play(Counter(5), agent)


@pytest.mark.parametrize("policy", ["drop_oldest", "hide_results"])
def test_a_policy_makes_room_and_the_environment_sees_everything(policy):
    speaker, counter = Room(5, 6), Counter(6)
    agent = SpeakingAgent(speaker, WANTED, Sampling(), policy)
    if policy == "hide_results":
        speaker.room = 8
    assert environment.play(counter, agent) == 1.0
    assert agent.shortened > 0
    last = speaker.seen[-1][0]
    assert last[0]["content"] == "Count."
    assert last[-1]["content"] == "result 6"
    # Each prompt goes on from the one before, until something is taken away again.
    shown = [messages for messages, _ in speaker.seen]
    grown = [b[: len(a)] == a for a, b in itertools.pairwise(shown)]
    assert 0 < grown.count(False) <= agent.shortened


def test_what_cannot_be_shortened_further_is_full():
    agent = SpeakingAgent(Room(2, 5), WANTED, Sampling(), "drop_oldest")
    with pytest.raises(ContextFull):
        environment.play(Counter(5), agent)


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(RequestError, match="a context policy is one of"):
        SpeakingAgent(Room(1, 1), WANTED, Sampling(), "refuse")
    wrong = "max_tokens must be at least 1: got 0; temperature .* top_p must be above"
    with pytest.raises(RequestError, match=wrong):
        Sampling(max_tokens=0, temperature=float("nan"), top_p=0)
