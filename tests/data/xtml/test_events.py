"""What a stream of events amounts to."""

import pytest

from k3.data.xtml import (
    PROBLEMS,
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    End,
    Message,
    Problem,
    Reasoning,
    ToolCall,
    assemble,
)

STOP = End("stop", complete=True)


def call(index, ended=True):
    start = [CallStart(index, f"f{index}"), CallArguments(index, "{"), Content("")]
    return [*start, CallArguments(index, "}"), *([CallEnd(index)] if ended else [])]


def test_texts_are_joined():
    found = assemble([Reasoning("a"), Content("x"), Reasoning("b"), Content("y"), STOP])
    assert found == Message("ab", "xy", (), "stop")


def test_an_open_stream_has_no_finish_reason():
    assert assemble([Reasoning("a")]) == Message("a", None, (), None)
    assert assemble([]) == Message(None, None, (), None)


def test_calls_are_told_apart():
    found = assemble([*call(0), *call(1, ended=False), End("length", complete=False)])
    assert found.tool_calls == (
        ToolCall("f0", "{}"),
        ToolCall("f1", "{}", complete=False),
    )
    assert found.finish_reason == "length"


@pytest.mark.parametrize(
    ("events", "end", "reason", "content"),
    [
        ([], STOP, "stop", ""),
        (call(0), STOP, "tool_calls", None),
        ([], End("length", complete=False), "length", None),
        ([], End("abort", complete=False), "abort", None),
        ([Content("x")], End("length", complete=False), "length", "x"),
        # The message was whole when the limit came.
        (call(0), End("length", complete=True), "tool_calls", None),
        (call(0), End("stop_text", complete=False), "tool_calls", None),
        (call(0, ended=False), End("stop_text", complete=False), "stop", None),
        ([], End("stop_text", complete=False), "stop", None),
    ],
)
def test_finish_reasons_and_missing_content(events, end, reason, content):
    found = assemble([*events, end])
    assert (found.finish_reason, found.content) == (reason, content)


def test_problems_are_kept_in_order_and_named():
    problems = (Problem("unclosed", "think"), Problem("index", "2"))
    assert assemble([*problems, STOP]).problems == problems
    assert {problem.kind for problem in problems} <= set(PROBLEMS)


def test_the_message_of_the_http_answer():
    found = assemble([Reasoning("w"), *call(0), *call(1), STOP]).to_dict("call_x")
    assert found["reasoning_content"] == found["reasoning"] == "w"
    assert found["content"] is None
    assert found["tool_calls"][1] == {
        "id": "call_x_1",
        "type": "function",
        "function": {"name": "f1", "arguments": "{}"},
    }
    assert "tool_calls" not in assemble([STOP]).to_dict()
