"""Whole prompts, written by hand from the format."""

import pytest

from k3.data import media
from k3.data.xtml import RenderOptions, render, segments
from k3.errors import RequestError

QUIET = RenderOptions(thinking_effort=None, add_generation_prompt=False)
INSTRUCT = RenderOptions(thinking=False, add_generation_prompt=False)
USER = {"role": "user", "content": "Hi"}
HI = '<|open|>message role="user"<|sep|>Hi<|close|>message<|sep|><|end_of_msg|>'
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"b": 1, "a": 2}}}
DECLARED = '[{"function":{"name":"f","parameters":{"a":2,"b":1}},"type":"function"}]'


def shown(*messages, wanted=QUIET, images=()):
    return render(list(messages), wanted, images).text


def answer(body):
    return (
        f'<|open|>message role="assistant"<|sep|>{body}'
        "<|close|>message<|sep|><|end_of_msg|>"
    )


def think(words):
    return f"<|open|>think<|sep|>{words}<|close|>think<|sep|>"


def response(words):
    return f"<|open|>response<|sep|>{words}<|close|>response<|sep|>"


def tools(*calls):
    return f"<|open|>tools<|sep|>{''.join(calls)}<|close|>tools<|sep|>"


def asked(arguments, name="f"):
    call = {"id": "a", "type": "function"}
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{**call, "function": function}]}


def test_plain_messages():
    system = {"role": "system", "content": "Be brief.\n"}
    assert shown(system, {**USER, "name": 'A "B"'}) == (
        '<|open|>message role="system"<|sep|>Be brief.\n<|close|>message<|sep|>'
        "<|end_of_msg|>"
        '<|open|>message role="user" name="A &quot;B&quot;"<|sep|>Hi'
        "<|close|>message<|sep|><|end_of_msg|>"
    )
    assert shown({**system, "role": "developer"}) == shown(system)
    assert shown({**USER, "name": ""}) == shown({**USER, "name": None}) == HI


def test_the_generation_prompt_opens_a_channel():
    opened = '<|open|>message role="assistant"<|sep|>'
    found = render([USER], RenderOptions(thinking_effort=None))
    assert found.text == f"{HI}{opened}<|open|>think<|sep|>"
    assert found.start_in == "think"
    found = render([USER], RenderOptions(thinking=False))
    assert found.text == f"{HI}{opened}<|open|>response<|sep|>"
    assert found.start_in == "response"


def test_the_default_effort_is_max():
    assert render([USER]).text.startswith(
        '<|open|>message role="system" type="thinking-effort"<|sep|>`thinking_effort`'
    )
    assert "`thinking_effort=max`." in render([USER]).text


def test_history_keeps_thinking_or_drops_it():
    past = {"role": "assistant", "reasoning_content": " why\n", "content": "so"}
    assert shown(USER, past) == HI + answer(think(" why\n") + response("so"))
    assert shown(USER, past, wanted=INSTRUCT) == HI + answer(response("so"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),
        ({"reasoning_content": None, "reasoning": "b"}, "b"),
        ({"reasoning_content": "", "reasoning": "b"}, "b"),
        ({"reasoning_content": "a", "reasoning": "b"}, "a"),
        ({"reasoning_content": " \n", "reasoning": "b"}, ""),
        ({"reasoning": "b"}, "b"),
    ],
)
def test_the_think_channel_is_always_there(fields, words):
    past = {"role": "assistant", "content": "x", **fields}
    assert shown(past) == answer(think(words) + response("x"))


def test_calls_have_typed_arguments():
    arguments = '{"s": "a\\nb", "n": 1.5, "t": true, "z": null, "o": {"k": "v"}}'
    parts = [
        ("s", "string", "a\nb"),
        ("n", "number", "1.5"),
        ("t", "boolean", "true"),
        ("z", "null", "null"),
        ("o", "object", '{"k": "v"}'),
    ]
    body = "".join(
        f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}'
        "<|close|>argument<|sep|>"
        for key, kind, value in parts
    )
    call = f'<|open|>call tool="f" index="1"<|sep|>{body}<|close|>call<|sep|>'
    assert shown(asked(arguments)) == answer(think("") + response("") + tools(call))


@pytest.mark.parametrize("arguments", [None, "", " ", "{}", {}])
def test_a_call_without_arguments(arguments):
    call = '<|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|>'
    assert shown(asked(arguments)) == answer(think("") + response("") + tools(call))


def test_arguments_that_are_not_json_stay_as_they_came():
    call = (
        '<|open|>call tool="f" index="1"<|sep|><|open|>json type="object"<|sep|>{"a": '
        "<|close|>json<|sep|><|close|>call<|sep|>"
    )
    found = shown(asked('{"a": '))
    assert found == answer(think("") + response("") + tools(call))


def test_calls_are_counted_and_may_be_bare():
    calls = [{"name": "a.b-c"}, {"name": "f", "arguments": {"k": ""}}]
    found = shown({"role": "assistant", "content": "x", "tool_calls": calls})
    body = tools(
        '<|open|>call tool="a.b-c" index="1"<|sep|><|close|>call<|sep|>',
        '<|open|>call tool="f" index="2"<|sep|><|open|>argument key="k" '
        'type="string"<|sep|><|close|>argument<|sep|><|close|>call<|sep|>',
    )
    assert found == answer(think("") + response("x") + body)


def test_report_77_names_and_keys_of_every_kind():
    for name in ("a-b", "a.b.c", "a_b:1", "x" * 64, "größe_汉", 'q"&'):
        escaped = name.replace("&", "&amp;").replace('"', "&quot;")
        assert f'call tool="{escaped}" index="1"' in shown(asked({}, name))
        assert f'key="{escaped}"' in shown(asked({name: 1}))


def test_results_are_sorted_and_indexed():
    calls = [{"id": "a", "name": "f"}, {"id": "b", "name": "g"}]
    messages = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [{"type": "text", "text": ""}],
        },
    ]
    end = "<|close|>message<|sep|><|end_of_msg|>"
    assert shown(*messages).endswith(
        f'<|open|>message role="tool" tool="f" index="1"<|sep|>{end}'
        f'<|open|>message role="tool" tool="g" index="2"<|sep|>B{end}'
    )


def test_dynamic_tools():
    found = shown(USER, {"role": "system", "content": "", "tools": [TOOL]})
    assert found == (
        f'{HI}<|open|>message role="system" type="tool-declare"<|sep|>'
        "## New Tools Available\n"
        "The system dynamically extends the toolset via lazy-loading.\n"
        "You have access to all existing and extended tools.\n"
        "Here are the specs for the extended tools.\n\n"
        f"```json\n{DECLARED}\n```<|close|>message<|sep|><|end_of_msg|>"
    )


def test_dynamic_tools_may_be_required():
    message = {"role": "system", "tools": [TOOL]}
    render([message, USER], RenderOptions(tool_choice="required"))
    with pytest.raises(RequestError, match="tool_choice must be auto or none"):
        render([USER], RenderOptions(tool_choice="required"))


def test_the_order_of_a_whole_document():
    wanted = RenderOptions(
        tools=[TOOL],
        tool_choice="required",
        response_format={"type": "json_object"},
    )
    found = render([USER], wanted).text
    marks = [
        'type="tool-declare"',
        'type="thinking-effort"',
        'role="user"',
        'type="tool-choice"',
        'type="response-format"',
        'role="assistant"',
    ]
    places = [found.index(mark) for mark in marks]
    assert places == sorted(places)


def test_one_shot_options_leave_the_prefix():
    plain = render([USER], RenderOptions(add_generation_prompt=False)).segments
    found = render([USER], RenderOptions(response_format={"type": "json_object"}))
    assert found.segments[: len(plain)] == plain


def test_images_take_their_prompts(tokenizer):
    prompt = media.prompt_text(40, 30)
    parts = [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "See?"}]
    found = render([{"role": "user", "content": parts}], QUIET, [prompt])
    assert found.text == HI.replace("Hi", prompt + "See?")
    ids = found.encode(tokenizer)
    assert ids.count(tokenizer.special_id("<|media_pad|>")) == 1
    with pytest.raises(RequestError, match="got 2 for 1 parts"):
        render([{"role": "user", "content": parts}], QUIET, [prompt, prompt])


@pytest.mark.parametrize(
    ("past", "thinking", "tail", "channel"),
    [
        ({"content": "So"}, True, f"{think('')}<|open|>response<|sep|>So", "response"),
        (
            {"content": "So", "reasoning": "w"},
            True,
            f"{think('w')}<|open|>response<|sep|>So",
            "response",
        ),
        ({"content": "So", "reasoning": "w"}, False, "<|open|>response<|sep|>So", None),
        ({"reasoning_content": "w"}, True, "<|open|>think<|sep|>w", "think"),
        ({"content": ""}, True, "<|open|>think<|sep|>", "think"),
        ({"content": None}, False, "<|open|>response<|sep|>", "response"),
    ],
)
def test_continue_final_message(past, thinking, tail, channel):
    wanted = RenderOptions(
        thinking=thinking, thinking_effort=None, continue_final_message=True
    )
    found = render([USER, {"role": "assistant", **past}], wanted)
    assert found.text == f'{HI}<|open|>message role="assistant"<|sep|>{tail}'
    assert found.start_in == (channel or "response")


def test_continuing_comes_after_the_one_shot_options():
    wanted = RenderOptions(
        continue_final_message=True, response_format={"type": "json_object"}
    )
    found = render([USER, {"role": "assistant", "content": '{"a"'}], wanted).text
    assert found.endswith('<|open|>response<|sep|>{"a"')
    assert found.index("response-format") < found.index('role="assistant"')


def test_fields_that_clients_send_back_are_accepted():
    past = {
        "role": "assistant",
        "content": "x",
        "id": "msg_1",
        "annotations": [{"type": "url_citation"}],
        "audio": None,
        "function_call": None,
        "refusal": None,
        "tool_calls": None,
        "partial": False,
    }
    assert shown(past) == answer(think("") + response("x"))


def test_markers_are_the_only_special_segments():
    found = render([USER, asked({"a": 1})]).segments
    assert {s.text for s in found if s.special} == set(segments.MARKERS)
    assert all(s.text for s in found)


def test_a_prompt_decodes_to_its_text(tokenizer):
    found = render([USER, asked({"a": "b"}), {"role": "tool", "content": "汉字"}])
    assert tokenizer.decode(found.encode(tokenizer)) == found.text
