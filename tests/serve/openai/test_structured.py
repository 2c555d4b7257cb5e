"""Formats and calls held to a grammar: what may come, and what never can."""

import json

import pytest

from k3.data import xtml
from k3.errors import RequestError
from k3.serve.openai import grammar
from k3.serve.openai.structured import Compiler
from k3.serve.request import Constraint

THINK = "<|close|>think<|sep|><|open|>response<|sep|>"
END = "<|close|>response<|sep|><|close|>message<|sep|>"
TOOL = {
    "type": "function",
    "function": {
        "name": 'a.b-c"é',
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "k": {"enum": ["u", "v", None]},
                "s": {"type": ["string", "null"], "maxLength": 3},
                "r": {"$ref": "#/$defs/point"},
            },
            "required": ["x"],
            "$defs": {"point": {"type": "object", "properties": {"y": {"const": 1}}}},
        },
    },
}
FREE = {"type": "function", "function": {"name": "free"}}


@pytest.fixture(scope="module")
def compiler(tokenizer):
    return Compiler(tokenizer, 512)


def accepts(compiler, tokenizer, text, start_in="think", parallel=True, **fields):
    """Whether a grammar takes an answer token by token, by its masks, to its end."""
    tools = fields.get("tools", ())
    options = xtml.RenderOptions(**fields)
    wanted = grammar.Wanted(options=options, tools=tools, parallel=parallel)
    assert wanted.needed
    constraint = compiler.compile(grammar.lark(wanted, start_in))
    assert isinstance(constraint, Constraint)
    for token in tokenizer.encode(text, allow_special=True):
        if constraint.done() or not constraint.mask()[token]:
            return False
        constraint.accept(token)
    return constraint.done()


def call(name, *arguments, index=1):
    body = "".join(
        f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}'
        "<|close|>argument<|sep|>"
        for key, kind, value in arguments
    )
    return (
        f'<|open|>call tool="{name}" index="{index}"<|sep|>{body}<|close|>call<|sep|>'
    )


def calling(*calls, said="", thought="Hm.\n"):
    tools = f"<|open|>tools<|sep|>{''.join(calls)}<|close|>tools<|sep|>"
    return (
        f"{thought}{THINK}{said}<|close|>response<|sep|>{tools}<|close|>message<|sep|>"
    )


@pytest.mark.parametrize("start_in", ["think", "response"])
def test_report_76_the_schema_holds_behind_the_whole_think_end(
    compiler, tokenizer, start_in
):
    schema = {
        "type": "object",
        "properties": {"reply": {"type": "string"}},
        "required": ["reply"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    head = f'free {{"thought"}}{THINK}' if start_in == "think" else ""

    def ok(body):
        text = head + body + END
        return accepts(compiler, tokenizer, text, start_in, response_format=wanted)

    assert ok('{"reply": "é😀 \\" }"}')
    assert ok('{\n  "reply":""\n}')
    for body in ("", "{}", '{"reply": 1}', '{"reply": "a"} x', "text", "[]", " " * 40):
        assert not ok(body)
    if start_in == "think":
        assert not accepts(compiler, tokenizer, "no end", response_format=wanted)


def test_json_objects_with_tools_beside_them(compiler, tokenizer):
    fields = {"response_format": {"type": "json_object"}, "tools": [FREE]}
    for text, good in (
        (f'{THINK}{{"a": [1, null]}}{END}', True),
        (calling(call("free")), True),
        (calling(call("free"), said="{}"), True),
        (f"{THINK}{END}", False),
        (f"{THINK}[1]{END}", False),
    ):
        assert accepts(compiler, tokenizer, text, **fields) == good


def test_report_77_calls_keep_to_the_tools_that_are_declared(compiler, tokenizer):
    name = xtml.escape(TOOL["function"]["name"])

    def ok(*arguments, name=name, **fields):
        asked = {"tools": [TOOL, FREE], "tool_choice": "required", **fields}
        text = calling(call(name, *arguments))
        return accepts(compiler, tokenizer, text, **asked)

    assert ok(("x", "number", "-3"))
    assert ok(("x", "number", "3"), ("k", "string", "v"), ("s", "string", "a\n"))
    assert ok(("x", "number", "3"), ("k", "null", "null"), ("s", "null", "null"))
    assert ok(("x", "number", "3"), ("r", "object", '{"y": 1}'))
    assert ok(("q", "array", "[true]"), name="free")
    assert not ok(("x", "string", "3"))
    assert not ok(("x", "number", "3.5"))
    assert not ok(("x", "number", "3"), ("x", "number", "3"))
    assert not ok(("x", "number", "3"), ("k", "string", "w"))
    assert not ok(("x", "number", "3"), ("s", "string", "long"))
    assert not ok(("x", "number", "3"), ("r", "object", '{"y": 2}'))
    assert not ok(("x", "number", "3"), ("z", "number", "3"))
    assert not ok(name="other")
    assert not ok()


def test_how_many_calls(compiler, tokenizer):
    two = calling(call("free"), call("free", index=2))
    named = {"type": "function", "function": {"name": "free"}}
    tools = {"tools": [TOOL, FREE]}

    def ok(text, **fields):
        return accepts(compiler, tokenizer, text, **tools, **fields)

    assert ok(two, tool_choice="required")
    assert not ok(two, tool_choice="required", parallel=False)
    assert ok(calling(call("free"), said="text"), tool_choice=named)
    assert not ok(two, tool_choice=named)
    assert not ok(f"a{THINK}b{END}", tool_choice="required")
    assert ok(f"a{THINK}b{END}", tool_choice="none")
    assert not ok(calling(call("free")), tool_choice="none")
    assert ok(f"a{THINK}b{END}", parallel=False)


def test_a_constraint_forks_and_goes_back(compiler, tokenizer):
    wanted = {"type": "json_schema", "json_schema": {"schema": {"const": "ab"}}}
    options = xtml.RenderOptions(response_format=wanted)
    lark = grammar.lark(grammar.Wanted(options=options), "response")
    one = compiler.compile(lark)
    for token in b'"a':
        one.accept(token)
    two = one.fork()
    assert one.mask().nonzero().flatten().tolist() == [ord("b")]
    one.accept(ord("b"))
    assert two.mask().nonzero().flatten().tolist() == [ord("b")]
    one.rollback(1)
    assert one.mask().nonzero().flatten().tolist() == [ord("b")]
    with pytest.raises(RequestError, match="simplify the schema"):
        two.accept(ord("x"))


def test_a_schema_that_cannot_be_held_to_is_refused_at_once(client):
    for schema in ({"type": "what"}, {"not": {}}, {"$ref": "#/a"}, {"pattern": "("}):
        wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
        error = client.chat(response_format=wanted, status=400)["error"]
        assert "must have a schema that can be enforced" in error["message"]
        assert error["param"] == "response_format"
    for name in ("ignore_eos", "continue_final_message"):
        messages = [{"role": "assistant", "content": "x"}]
        fields = {name: True, "response_format": {"type": "json_object"}}
        assert client.chat(messages, status=400, **fields)["error"]["param"] == name


def test_nothing_is_constrained_without_need(client, worker):
    client.chat(tools=[FREE])
    assert worker.requests[-1].constraint is None
    strict = json.loads(json.dumps(FREE))
    strict["function"]["strict"] = True
    for fields in (
        {"tools": [strict]},
        {"tools": [FREE], "tool_choice": "none"},
        {"tools": [FREE], "parallel_tool_calls": False},
        {"response_format": {"type": "json_object"}},
    ):
        client.chat(**fields)
        assert worker.requests[-1].constraint is not None
