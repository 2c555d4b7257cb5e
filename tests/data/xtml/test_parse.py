"""Answers and slips: what each is read as."""

import re

from k3.data import xtml
from k3.data.xtml import Problem, ToolCall, parse

WEATHER = ToolCall("get_weather", '{"city": "Zürich \\"West\\"\\n\\\\", "days": 3}')
CALLS = (WEATHER, ToolCall("a.b-c", '{"q&\\"": {"k": [1, null]}}'))
MARKER = re.compile(r"(<\|(?:open|close|sep|end_of_msg)\|>)")


def tokens(text):
    """The answer as tokens: markers special, the rest one character each."""
    parts = MARKER.split(text)
    return [
        piece
        for number, part in enumerate(parts)
        for piece in ([(part, True)] if number % 2 else [(c, False) for c in part])
    ]


def fields(found):
    return found.reasoning, found.content, found.tool_calls, found.finish_reason


def kinds(found):
    return [problem.kind for problem in found.problems]


def test_well_formed_answers(answers):
    found = parse(answers["plain"])
    assert fields(found) == ("I see.", "A < B", (), "stop")
    assert found.problems == ()
    found = parse(answers["calls"])
    assert fields(found) == ("Call it.", None, CALLS, "tool_calls")
    assert found.problems == ()


def test_report_2_tools_without_the_think_close(answers):
    found = parse(answers["no think-close"])
    assert fields(found) == ("Call it.", None, CALLS, "tool_calls")
    assert found.problems == (Problem("unclosed", "think"),)
    assert parse(tokens(answers["no think-close"])) == found


def test_report_10_cut_in_think_is_reasoning_only():
    found = parse("so far", reason="length")
    assert fields(found) == ("so far", None, (), "length")
    assert fields(parse("so far")) == ("so far", "", (), "stop")


def test_report_10_without_thinking_text_is_content():
    for reason in ("stop", "length"):
        found = parse("so far", "response", reason)
        assert fields(found) == (None, "so far", (), reason)


def test_report_35_a_cut_inside_a_tag_leaks_nothing():
    text = "x<|close|>response<|sep|>"
    for stop in range(text.index("|>") + 2, len(text)):
        found = parse(text[:stop], "response", "length")
        assert found.content == "x"
    # Half a marker of ordinary text may be text, and is kept.
    assert parse("a <|ope", "response", "length").content == "a <|ope"


def test_report_76_the_channel_changes_after_the_whole_tag():
    parser = xtml.Parser("think")
    seen = []
    for piece in tokens("w<|close|>think<|sep|><|open|>response<|sep|>{}<|close|>"):
        parser.push(piece)
        seen.append(parser.channel)
    assert seen[:7] == ["think"] * 7
    assert seen[7:16] == ["message"] * 9
    assert seen[-3:] == ["response"] * 3


def test_report_79_nothing_is_read_after_the_end():
    for end in ("<|close|>message<|sep|>", "<|end_of_msg|>"):
        parser = xtml.Parser("response")
        parser.push(f"x{end}")
        assert parser.done
        assert parser.push('more<|open|>call tool="f"<|sep|>') == []
        assert parser.finish("length") == [xtml.End("length", complete=True)]


def test_report_79_a_spelled_marker_in_an_argument_is_text():
    head = tokens('<|open|>call tool="f" index="1"<|sep|><|open|>argument key="k" ')
    head += tokens('type="string"<|sep|>')
    spelled = [("<|end_of_msg|>", False), ("<|close|>argument<|sep|>", False)]
    tail = tokens("<|close|>argument<|sep|><|close|>call<|sep|>")
    found = parse([*head, *spelled, *tail], "message")
    assert found.tool_calls == (
        ToolCall("f", '{"k": "<|end_of_msg|><|close|>argument<|sep|>"}'),
    )


def test_a_think_open_after_the_prompt_has_opened_it():
    assert parse("<|open|>think<|sep|>w<|end_of_msg|>").reasoning == "w"


def test_missing_closes(answers):
    found = parse(answers["no closes"])
    call = ToolCall("f", '{"a": "1", "b": [2]}')
    assert fields(found) == ("w", "x", (call,), "tool_calls")
    assert found.problems == (
        Problem("unclosed", "think"),
        Problem("unclosed", "response"),
        Problem("index", "None for call 1"),
        Problem("unclosed", "argument"),
        Problem("unclosed", "argument"),
        Problem("unclosed", "tools"),
        Problem("unclosed", "message"),
    )


def test_text_between_channels_is_content(answers):
    found = parse(answers["between"])
    assert fields(found) == ("w", "Well \n then x ", (), "stop")
    assert kinds(found) == ["stray text"]


def test_unknown_channels_are_content(answers):
    found = parse(answers["unknown"])
    assert fields(found) == ("w", "x<|open|>b<|sep|>y", (), "stop")
    assert found.problems == (
        Problem("unknown element", "final"),
        Problem("unknown element", "b"),
    )


def test_markers_that_form_no_tag_are_text(answers):
    found = parse(answers["markup"])
    assert found.reasoning == "a <|open|>b c <|sep|> d <|close|>5 <|open|>e<|clo"
    assert found.content == "fg"
    assert kinds(found) == [
        *["not a tag", "not a tag", "unknown element", "not a tag"],
        "unclosed",
        "stray close",
        "unclosed",
        "unclosed",
    ]


def test_bad_values(answers):
    found = parse(answers["bad values"])
    assert found.tool_calls == (
        ToolCall("f", '{"n": "three", "m": "3", "u": 4, "v": "five"}'),
    )
    assert found.problems[:9] == (
        Problem("unclosed", "think"),
        Problem("index", "7 for call 1"),
        Problem("invalid JSON", "n"),
        Problem("type", "m: string for number"),
        Problem("unknown type", "u: integer"),
        Problem("unknown type", "v: "),
        Problem("no key", ""),
        Problem("duplicate key", "n"),
        Problem("stray text", "stray"),
    )


def test_bodies_of_json(answers):
    found = parse(answers["json bodies"])
    assert found.tool_calls == (
        ToolCall("f", '{"a": {"}": 1}}'),
        ToolCall("g", '{"a": 1}'),
        ToolCall("h", "{oops"),
        ToolCall("i", '{"json": [1]}'),
    )
    assert Problem("no tool", "call 4") in found.problems
    assert Problem("stray text", "no") in found.problems


def test_missing_separators(answers):
    found = parse(answers["no separators"])
    assert fields(found) == ("w", "x", (ToolCall("f", "{}"),), "tool_calls")
    assert kinds(found) == [*["no separator"] * 6, "unclosed"]


def test_the_model_does_not_speak_for_the_user(answers):
    found = parse(answers["next turn"])
    assert fields(found) == ("w", "xy", (), "stop")
    assert Problem("message tag", "user") in found.problems


def test_a_last_tag_without_its_separator(answers):
    found = parse(answers["ends in a tag"])
    assert found.tool_calls == CALLS
    assert Problem("no separator", "tools") in found.problems
    found = parse(answers["ends in a tag"], reason="length")
    assert found.tool_calls == CALLS
    assert found.finish_reason == "length"


def test_other_special_tokens_are_left_out():
    found = parse([("a", False), ("<|media_pad|>", True), ("b", False)], "response")
    assert found.content == "ab"
    assert found.problems[0] == Problem("special token", "<|media_pad|>")


def test_elements_of_a_call_outside_one():
    found = parse('<|open|>argument key="a"<|sep|>1<|close|>argument<|sep|>', "think")
    assert found.reasoning == '<|open|>argument key="a"<|sep|>1'
    found = parse("<|open|>tools<|sep|><|open|>json<|sep|>1", "message")
    assert Problem("stray text", "<|open|>json<|sep|>1") in found.problems


def test_tags_of_channels_inside_a_call():
    call = '<|open|>call tool="f" index="1"<|sep|>'
    found = parse(f"{call}<|open|>response<|sep|>x", "message")
    assert fields(found) == (None, "x", (ToolCall("f", "{}"),), "tool_calls")
    argument = '<|open|>argument key="a" type="string"<|sep|>'
    found = parse(f"{call}{argument}<|close|>think<|sep|><|open|>message<|sep|>")
    value = '{"a": "<|close|>think<|sep|><|open|>message<|sep|>"}'
    assert found.tool_calls == (ToolCall("f", value),)


def test_stray_closes_between_channels_are_left_out():
    found = parse("<|close|>x<|sep|><|close|>call<|sep|>", "message")
    assert fields(found) == (None, "", (), "stop")
    assert kinds(found) == ["stray close", "stray close", "unclosed"]


def test_a_fork_reads_on_by_itself():
    parser = xtml.Parser("response")
    parser.push('x<|open|>call tool="f"<|sep|><|open|>argument key="a" type="number"')
    other = parser.fork()
    rest = "<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|>"
    first = [*parser.push(rest), *parser.finish()]
    other.push("<|sep|>22")
    second = other.finish("length")
    assert first[0] == xtml.CallArguments(0, '{"a": ')
    assert second[0] == xtml.CallArguments(0, "22")


def test_strings_stream_as_they_come():
    parser = xtml.Parser("message")
    parser.push('<|open|>call tool="f"<|sep|><|open|>argument key="a" type="string"')
    parser.push("<|sep|>")
    assert parser.push("abc") == [xtml.CallArguments(0, "abc")]
    assert parser.push("<|close|>argu") == []
