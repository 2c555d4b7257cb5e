"""An environment is played: answers in, results out, one score, closed at the end."""

import pytest

from k3.data import xtml
from k3.data.xtml import Message, RenderOptions, ToolCall
from k3.envs import environment
from k3.envs.environment import Environment


class Echo:
    """Says back what its one tool is given, and ends at the first plain answer."""

    wanted = RenderOptions()

    def __init__(self):
        self.closed, self.turn, self.last = 0, 0, ""

    def begin(self):
        return [{"role": "user", "content": "Say a word."}]

    def reply(self, message):
        self.last = message.content
        if not message.tool_calls:
            return None
        said = environment.results(self.turn, [c.arguments for c in message.tool_calls])
        self.turn += 1
        return said

    def score(self):
        return float(self.last == "done")

    def close(self):
        self.closed += 1


def answer(content, *calls):
    return Message(None, content, tuple(ToolCall("echo", c) for c in calls), "stop")


def test_it_is_played_to_its_end_and_closed():
    seen, answers = [], iter([answer("", "{}", "{}"), answer("done")])

    def agent(messages):
        seen.append(list(messages))
        return next(answers)

    echo = Echo()
    assert isinstance(echo, Environment)
    assert environment.play(echo, agent) == 1.0
    assert echo.closed == 1
    assert [m["role"] for m in seen[1]] == ["user", "assistant", "tool", "tool"]
    calls = [c["id"] for c in seen[1][1]["tool_calls"]]
    assert calls == [m["tool_call_id"] for m in seen[1][2:]]
    xtml.render(seen[1], echo.wanted)


def test_it_is_scored_where_the_answers_run_out():
    assert environment.play(Echo(), lambda messages: answer("", "{}"), turns=3) == 0.0


def test_it_is_closed_where_the_agent_fails():
    def fails(messages):
        raise RuntimeError("no")

    echo = Echo()
    with pytest.raises(RuntimeError, match="no"):
        environment.play(echo, fails)
    assert echo.closed == 1
