"""Protocols: conditions as data, in their ranges."""

import pytest

from k3.envs import registry
from k3.errors import ConfigError, RequestError
from k3.eval import protocol
from k3.eval.protocol import Play, Protocol


def test_every_environment_is_a_protocol_and_no_task_hides_one():
    assert not set(registry.names()) & {"text", *protocol.PROTOCOLS}
    found = protocol.named("calculator")
    assert found == Play(name="calculator", environment="calculator")
    assert protocol.named("chat") is protocol.PROTOCOLS["chat"]
    table = protocol.named("table@react")
    assert table == Play(name="table@react", environment="table@react")
    with pytest.raises(ConfigError, match=r"a harness is one of .*: got 'reactor'"):
        protocol.named("table@reactor")
    with pytest.raises(RequestError, match=r"or an environment, .*: got 'mmlu'"):
        protocol.named("mmlu")


def test_conditions_are_changed_in_their_types():
    given = {"temperature": 1, "samples": 4, "effort": "max", "context": "hide_results"}
    found = protocol.changed(protocol.named("calculator"), given)
    assert (found.temperature, found.samples, found.effort) == (1, 4, "max")
    wrong = "samples must be like 4: got 2.5; effort must be like 'max': got None"
    with pytest.raises(RequestError, match=wrong):
        protocol.changed(found, {"samples": 2.5} | {"effort": None} | {"seed": 3})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"temperature": float("nan")}, "temperature must be at least 0: got nan"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1: got 0"),
        ({"effort": "medium"}, "effort must be none, low, high, max or empty: got"),
        ({"context": "refuse"}, "a context policy is one of end, drop_oldest"),
        ({"context_tokens": -1, "turns": 2}, "context_tokens must be at least 0"),
        ({"turns": 0}, "turns must be at least 1"),
        ({"samples": 2}, "several samples need a temperature"),
    ],
)
def test_what_has_no_meaning_is_refused(changes, sentence):
    with pytest.raises(RequestError, match=sentence):
        Play(name="x", environment="calculator", **changes)


def test_a_question_has_no_turns_to_drop():
    with pytest.raises(RequestError, match="a question has no turns to take away: got"):
        Protocol(name="x", task="chat", context="drop_oldest")
