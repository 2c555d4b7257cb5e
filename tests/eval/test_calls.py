"""A call is valid where the declared schema takes it; each rule has its breach."""

import json

import pytest

from k3.data import tasks, xtml
from k3.data.tasks import tools
from k3.data.tasks.lot import Lot
from k3.eval import calls


def call(name, arguments, complete=True):
    return xtml.ToolCall(name, json.dumps(arguments), complete)


@pytest.mark.parametrize(
    ("name", "arguments", "fits"),
    [
        ("calculator", {"a": 1, "op": "+", "b": 2.5}, True),
        ("calculator", {"a": 1, "op": "/", "b": 2}, False),
        ("calculator", {"a": "1", "op": "+", "b": 2}, False),
        ("calculator", {"a": True, "op": "+", "b": 2}, False),
        ("calculator", {"a": 1, "op": "+"}, False),
        ("calculator", {"a": 1, "op": "+", "b": 2, "c": 3}, False),
        ("lookup", {"key": "x"}, True),
        ("lookup", {"key": None}, False),
        ("lookup", {}, False),
        ("search", {"key": "x"}, False),
    ],
)
def test_a_call_fits_what_is_declared(name, arguments, fits):
    assert calls.fits(call(name, arguments), tools.TOOLS) is fits


def test_a_cut_call_fits_nothing():
    assert not calls.fits(xtml.ToolCall("lookup", '{"key": "x', False), tools.TOOLS)


def test_a_schema_may_leave_other_keys_open():
    open_ = {"type": "object", "properties": {"a": {"type": "null"}}}
    assert calls.matches({"b": 1}, open_)
    assert not calls.matches({"a": 1}, open_)
    assert calls.matches([1], {})


def test_the_tasks_own_calls_are_valid_and_a_slip_is_not():
    for index in range(20):
        item = tools.draw(Lot.of("tools", "heldout", index))
        text = answer(item)
        message = xtml.parse(text, "response")
        assert calls.valid(message, item.tools)
        wanted = item.messages[1]["tool_calls"]
        assert calls.given(message) == calls.asked(wanted)
        slipped = text.replace("<|close|>call<|sep|>", "")
        assert not calls.valid(xtml.parse(slipped, "response"), item.tools)
    assert not calls.valid(xtml.parse("4<|close|>response<|sep|>", "response"), ())


def answer(item):
    """What the assistant writes in the first answer."""
    prompts = (
        xtml.render(item.messages[:count], wanted).text
        for count, wanted in ((1, item.wanted), (2, closed(item)))
    )
    before, whole = prompts
    text = whole.removeprefix(before)
    return text.removeprefix("<|close|>think<|sep|><|open|>response<|sep|>")


def closed(item):
    assert isinstance(item, tasks.Dialogue)
    return xtml.RenderOptions(
        tools=item.tools,
        thinking=item.effort is not None,
        thinking_effort=item.effort,
        add_generation_prompt=False,
    )
