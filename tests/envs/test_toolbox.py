"""Tools are declared, called and refused; no call of a model raises."""

import json

import pytest

from k3.data import xtml
from k3.data.xtml import Message, RenderOptions, ToolCall
from k3.envs.toolbox import FLAG, TEXT, TEXTS, WHOLE, Tool, Toolbox
from k3.errors import RequestError


def act(word, count=1, loud=False, others=()):
    if word == "no":
        raise RequestError("a word must not be no: got no; choose another")
    return (word.upper() if loud else word) * count + "".join(others)


KIND = {"type": "string", "enum": ["a", "b"]}
TOOL = Tool(
    name="say",
    description="Say a word.",
    act=act,
    properties={"word": TEXT, "count": WHOLE, "loud": FLAG, "others": TEXTS},
    optional=frozenset({"count", "loud", "others"}),
)
OTHER = Tool(
    name="kind",
    description="",
    act=lambda kind, at: f"{kind}{at}",
    properties={"kind": KIND, "at": {"type": "number"}},
)
BOX = Toolbox([TOOL, OTHER])


def say(name, arguments):
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return BOX.say(ToolCall(name, text))


def test_calls_are_done():
    assert say("say", {"word": "ab"}) == "ab"
    assert say("say", {"word": "x", "count": 3, "loud": True}) == "XXX"
    assert say("say", {"word": "x", "others": ["y", "z"]}) == "xyz"
    assert say("kind", {"kind": "b", "at": 0.5}) == "b0.5"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("sing", {}, "there is no tool sing"),
        ("say", "{", "arguments must be a JSON object"),
        ("say", "[1]", "arguments must be a JSON object"),
        ("say", {}, "say needs word"),
        ("say", {"word": 1}, "word must be of type string"),
        ("say", {"word": "a", "count": True}, "count must be of type integer"),
        ("say", {"word": "a", "others": [1]}, "others must hold values of type string"),
        ("say", {"word": "a", "more": 1}, "say has no argument more"),
        ("say", {"word": "no"}, "a word must not be no: got no; choose another"),
        ("kind", {"kind": "c", "at": 1}, "kind must be one of a, b"),
        ("kind", {"kind": "a", "at": True}, "at must be of type number"),
    ],
)
def test_what_cannot_be_done_is_said(name, arguments, said):
    assert say(name, arguments) == f"error: {said}"


def test_results_are_in_the_order_of_the_calls():
    calls = (ToolCall("say", '{"word": "a"}'), ToolCall("no", "{}"))
    found = BOX.results(2, Message(None, "", calls, "tool_calls"))
    assert [m["tool_call_id"] for m in found] == ["turn2_0", "turn2_1"]
    assert [m["content"] for m in found] == ["a", "error: there is no tool no"]


def test_its_declarations_render():
    wanted = RenderOptions(tools=BOX.declared)
    xtml.render([{"role": "user", "content": "hi"}], wanted)
    assert BOX.declared[0]["function"]["parameters"]["required"] == ["word"]
