"""One call: typed arguments, bodies of JSON, slips, cuts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import xtml

TOOLS = "<|open|>tools<|sep|>"
CLOSED = "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"


def argument(key, kind, body):
    return (
        f'<|open|>argument key="{key}" type="{kind}"<|sep|>{body}'
        "<|close|>argument<|sep|>"
    )


def call(body, head='tool="f" index="1"'):
    text = f"{TOOLS}<|open|>call {head}<|sep|>{body}{CLOSED}"
    return xtml.parse(text, "message")


def arguments(body):
    found = call(body)
    assert found.finish_reason == "tool_calls"
    (only,) = found.tool_calls
    assert only.complete
    return only.arguments, [problem.kind for problem in found.problems]


@pytest.mark.parametrize(
    ("kind", "body", "value", "problems"),
    [
        ("string", "plain text", '"plain text"', []),
        ("string", "", '""', []),
        ("string", '{"a": {"}": 1}}', '"{\\"a\\": {\\"}\\": 1}}"', []),
        ("string", '"quoted"', '"\\"quoted\\""', []),
        ("string", "3", '"3"', []),
        ("number", "3", "3", []),
        ("number", " 3\n", "3", []),
        ("number", "1e400", "1e400", []),
        ("number", "-0", "-0", []),
        ("number", "9" * 5000, "9" * 5000, []),
        ("boolean", "true", "true", []),
        ("null", "null", "null", []),
        ("array", '[1, "a", {"b": []}]', '[1, "a", {"b": []}]', []),
        ("object", '{"a":{"b":"}"}}', '{"a":{"b":"}"}}', []),
        ("number", "three", '"three"', ["invalid JSON"]),
        ("number", "", '""', ["invalid JSON"]),
        ("number", "NaN", '"NaN"', ["invalid JSON"]),
        ("boolean", "True", '"True"', ["invalid JSON"]),
        ("object", "{'a': 1}", "\"{'a': 1}\"", ["invalid JSON"]),
        ("number", '"3"', '"3"', ["type"]),
        ("object", "[]", "[]", ["type"]),
        ("integer", "3", "3", ["unknown type"]),
        ("integer", "three", '"three"', ["unknown type"]),
        ("", "null", "null", ["unknown type"]),
    ],
)
def test_report_20_report_77_payloads(kind, body, value, problems):
    assert arguments(argument("k", kind, body)) == (f'{{"k": {value}}}', problems)


def test_an_argument_without_a_type():
    body = '<|open|>argument key="k"<|sep|>a b<|close|>argument<|sep|>'
    assert arguments(body) == ('{"k": "a b"}', ["unknown type"])


def test_report_77_keys_in_their_order_and_the_first_of_two():
    body = argument("b", "number", "1") + argument("a", "string", "x")
    assert arguments(body) == ('{"b": 1, "a": "x"}', [])
    found = call(body + argument("b", "number", "2"))
    assert found.tool_calls[0].arguments == '{"b": 1, "a": "x"}'
    assert found.problems == (xtml.Problem("duplicate key", "b"),)


def test_an_argument_without_a_key_is_left_out():
    body = '<|open|>argument type="number"<|sep|>1<|close|>argument<|sep|>'
    assert arguments(body) == ("{}", ["no key"])
    assert arguments(body + argument("", "number", "2")) == ('{"": 2}', ["no key"])


@pytest.mark.parametrize("name", ["a-b", "a.b.c", "a_b:1", "x" * 64, "größe", "undecl"])
def test_report_77_names_of_every_kind(name):
    found = call("", f'tool="{name}" index="1"')
    assert found.tool_calls == (xtml.ToolCall(name, "{}"),)
    assert not found.problems


@pytest.mark.parametrize("head", ['index="1"', 'tool="" index="1"'])
def test_report_20_a_call_without_a_name_is_left_out_and_good_ones_survive(head):
    good = f'<|open|>call tool="g" index="2"<|sep|>{argument("k", "number", "1")}'
    found = call(f"{argument('a', 'number', 'x')}<|close|>call<|sep|>{good}", head)
    assert found.tool_calls == (xtml.ToolCall("g", '{"k": 1}'),)
    assert found.problems[0] == xtml.Problem("no tool", "call 1")


@pytest.mark.parametrize(("index", "ok"), [("1", True), ("2", False), ("x", False)])
def test_the_place_counts_whatever_the_index(index, ok):
    found = call("", f'tool="f" index="{index}"')
    assert found.tool_calls == (xtml.ToolCall("f", "{}"),)
    assert (found.problems == ()) == ok
    missing = call("", 'tool="f"')
    assert missing.problems == (xtml.Problem("index", "None for call 1"),)


@pytest.mark.parametrize(
    ("body", "value", "problems"),
    [
        ('{"a": 1}', '{"a": 1}', []),
        ("", "{}", []),
        ("{oops", "{oops", ["invalid arguments"]),
        ("[1]", '{"json": [1]}', ["invalid arguments"]),
        ("NaN", '{"json": "NaN"}', ["invalid arguments"]),
    ],
)
def test_a_body_of_json(body, value, problems):
    element = f'<|open|>json type="object"<|sep|>{body}<|close|>json<|sep|>'
    assert arguments(element) == (value, problems)
    # The same where the model leaves the element out.
    assert arguments(f"\n{body}\n") == (value, problems)


def test_a_json_body_beside_arguments_is_reported():
    found = call(f"{argument('a', 'number', '1')}<|open|>json<|sep|>{{}}x")
    assert found.tool_calls == (xtml.ToolCall("f", '{"a": 1}'),)
    assert xtml.Problem("stray text", "{}x") in found.problems
    found = call("<|open|>json<|sep|>{}<|close|>json<|sep|> x ")
    assert found.problems == (xtml.Problem("stray text", "x"),)


def test_closing_tags_that_are_missing_or_wrong():
    opened = '<|open|>argument key="a" type="number"<|sep|>1'
    assert arguments(opened) == ('{"a": 1}', ["unclosed"])
    assert arguments(f"{opened}<|close|>json<|sep|>") == ('{"a": 1}', ["unclosed"])
    assert arguments("<|close|>argument<|sep|>") == ("{}", ["stray close"])
    assert arguments(opened + argument("b", "null", "null")) == (
        '{"a": 1, "b": null}',
        ["unclosed"],
    )


CUT = f'{TOOLS}<|open|>call tool="f" index="1"<|sep|>'


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("", "{"),
        ("12", "{12"),
        ("NaN", "{NaN"),
        ('{"a": ', '{"a":'),
        ("<|open|>json<|sep|>{", "{"),
        ('<|open|>argument key="k" type="string"<|sep|>rm -rf /', '{"k": "rm -rf /'),
        ('<|open|>argument key="k" type="array"<|sep|>[1, 2', '{"k": [1, 2'),
        (argument("k", "number", "1"), '{"k": 1'),
        ('<|open|>argument type="string"<|sep|>lost', "{"),
    ],
)
def test_report_49_a_cut_call_is_no_json_and_flagged(body, value):
    for reason in ("length", "stop_text", "abort"):
        found = xtml.parse(CUT + body, reason=reason)
        assert found.tool_calls == (xtml.ToolCall("f", value, complete=False),)
        assert found.problems[-1] == xtml.Problem("cut call", "f")
        assert found.finish_reason == {"stop_text": "stop"}.get(reason, reason)
        with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
            json.loads(value)


def test_a_call_whose_body_is_whole_is_not_cut():
    found = xtml.parse(f'{CUT}{{"a": 1}}', reason="length")
    assert found.tool_calls == (xtml.ToolCall("f", '{"a": 1}'),)
    assert found.finish_reason == "length"


HARD = 'é"\\{"}\n\t\x00\u2028😀\\ud83d\\ude00"'


def test_report_49_arguments_stream_as_json_at_every_cut(read_events):
    whole = CUT + argument("k", "string", HARD) + argument("n", "number", "1") + CLOSED
    for place in range(len(whole)):
        found = read_events([whole[:place], whole[place:]])
        text = "".join(e.text for e in found if isinstance(e, xtml.CallArguments))
        assert json.loads(text) == {"k": HARD, "n": 1}


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text())
def test_any_string_and_key(key, value):
    tokens = [("<|open|>", True), ('call tool="f" index="1"', False)]
    tokens += [("<|sep|>", True), ("<|open|>", True)]
    escaped = xtml.escape(key)
    tokens += [(f'argument key="{escaped}" type="string"', False), ("<|sep|>", True)]
    tokens += [*((char, False) for char in value), ("<|close|>", True)]
    tokens += [("argument", False), ("<|sep|>", True)]
    found = xtml.parse(tokens, "message")
    assert json.loads(found.tool_calls[0].arguments) == {key: value}
