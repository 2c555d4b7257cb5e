"""One tool, one needed call: who calls and says what came is right, who guesses not."""

import json

import pytest

from k3.data.xtml import Message, ToolCall
from k3.envs import calculator, environment, lookup, registry
from k3.envs.environment import Environment

MAKERS = {"calculator": calculator.make, "lookup": lookup.make}


@pytest.fixture(params=MAKERS)
def draw(request):
    def drawn(index=0, split="train"):
        return MAKERS[request.param](split, index)

    return drawn


def said(content):
    return Message(None, content, (), "stop")


def call(question, **changes):
    arguments = {**question.needed, **changes}
    name = question.tool["function"]["name"]
    return Message(None, None, (ToolCall(name, json.dumps(arguments)),), "tool_calls")


def agent(*answers):
    left = iter(answers)
    return lambda messages: next(left)


def test_a_perfect_agent_scores_1(draw):
    for index in range(20):
        question = draw(index)
        assert isinstance(question, Environment)
        assert environment.play(question, question.solve) == 1.0
        assert question.score() == 1.0


def test_who_guesses_scores_0_even_where_the_guess_is_right(draw):
    question = draw()
    right = said(f"It is {question.result}.")
    assert environment.play(question, agent(right)) == 0.0


def test_an_empty_agent_scores_0(draw):
    assert environment.play(draw(), agent(said(None))) == 0.0
    assert environment.play(draw(), agent(said(""))) == 0.0


def test_the_right_call_and_another_answer_score_0(draw):
    question = draw()
    answers = call(question), said("It is 5.")
    assert environment.play(question, agent(*answers)) == 0.0


def test_another_call_and_the_right_answer_score_0(draw):
    question = draw()
    key = next(iter(question.needed))
    other = call(question, **{key: 7})
    answers = other, said(f"It is {question.result}.")
    assert environment.play(question, agent(*answers)) == 0.0


def test_who_says_everything_scores_0(draw):
    question = draw()
    everything = said("1 2 3 4 5 6 " + question.result)
    assert environment.play(question, agent(call(question), everything)) == 0.0


def test_a_mended_call_counts(draw):
    question = draw()
    other = call(question, extra=1)
    answers = other, call(question), said(question.result)
    assert environment.play(question, agent(*answers)) == 1.0


def test_calls_without_end_end(draw):
    question = draw()
    many = [call(question, extra=1)] * 10
    assert environment.play(question, agent(*many)) == 0.0
    assert question.turns == 4


@pytest.mark.parametrize(
    "bad",
    [
        ToolCall("other", "{}"),
        ToolCall("", "{"),
        ToolCall("calculator", "[1]"),
        ToolCall("lookup", '{"document": ["A"], "key": {}}'),
        ToolCall("lookup", '{"document": "A"'),
        ToolCall("calculator", '{"a": NaN, "op": "+", "b": 1}'),
        ToolCall("calculator", '{"a": true, "op": "+", "b": 1}'),
        ToolCall("calculator", '{"a": 1e999, "op": "+", "b": 1}'),
        ToolCall("calculator", '{"a": 1, "op": ["+"], "b": 1}'),
        ToolCall("calculator", '{"a": 1, "op": "+", "b": 1', complete=False),
    ],
)
def test_no_call_breaks_it(draw, bad):
    question = draw()
    heard = question.reply(Message(None, None, (bad,), "tool_calls"))
    assert [m["role"] for m in heard] == ["tool"]
    assert heard[0]["content"]
    assert question.score() == 0.0


def test_the_same_draw_is_the_same_question(draw):
    assert draw(3).text == draw(3).text
    assert draw(3).needed == draw(3).needed
    assert draw(3).result == draw(3).result
    assert len({draw(i).text for i in range(30)}) > 20


def test_splits_share_no_question(draw):
    held = {json.dumps(draw(i, "heldout").needed) for i in range(300)}
    trained = {json.dumps(draw(i).needed) for i in range(300)}
    assert not held & trained


def test_it_is_known_by_name():
    for name, make in MAKERS.items():
        assert registry.named(name)("train", 2).text == make("train", 2).text
