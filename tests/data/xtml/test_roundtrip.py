"""What is rendered is parsed back: messages to tokens to messages."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import xtml
from k3.data.xtml.segments import END

ODD = st.lists(
    st.sampled_from(
        [
            *("<|open|>", "<|close|>", "<|sep|>", END, "<|media_pad|>", "<|", "|>"),
            *("<|close|>argument<|sep|>", "<|open|>think<|sep|>", '"', "&", "&quot;"),
            *(
                "\\",
                "\n",
                "\x00",
                " ",
                "é",
                "汉",
                "😀",
                "\u2028",
                "{",
                "}",
                "[",
                "null",
            ),
        ]
    )
    | st.text(max_size=4),
    max_size=5,
).map("".join)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.tuples(ODD.filter(bool), st.dictionaries(ODD, VALUES, max_size=3))
MESSAGES = st.fixed_dictionaries(
    {
        "content": st.none() | ODD,
        "reasoning_content": st.none() | ODD,
        "calls": st.lists(CALLS, max_size=3),
    }
)


def request(fields):
    calls = [
        {"id": str(place), "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(fields["calls"])
    ]
    rest = {key: fields[key] for key in ("content", "reasoning_content")}
    return [
        {"role": "user", "content": "x"},
        {"role": "assistant", **rest, "tool_calls": calls},
    ]


def answer_ids(messages, tokenizer, thinking):
    """The ids after the generation prompt: what the model would have said."""
    wanted = {"thinking": thinking, "thinking_effort": None}
    prompt = xtml.render(messages[:-1], xtml.RenderOptions(**wanted)).encode(tokenizer)
    options = xtml.RenderOptions(**wanted, add_generation_prompt=False)
    whole = xtml.render(messages, options).encode(tokenizer)
    assert whole[: len(prompt)] == prompt
    return whole[len(prompt) :]


def read(ids, tokenizer, thinking):
    pieces = xtml.Pieces(tokenizer)
    stream = [piece for token in ids for piece in pieces.push(token)]
    return xtml.parse(stream, "think" if thinking else "response")


@pytest.mark.parametrize("thinking", [True, False])
@settings(max_examples=30, deadline=None)
@given(fields=MESSAGES)
def test_an_assistant_message_comes_back(byte_tokenizer, fields, thinking):
    messages = request(fields)
    ids = answer_ids(messages, byte_tokenizer, thinking)
    found = read(ids, byte_tokenizer, thinking)
    assert found.problems == ()
    reasoning = fields["reasoning_content"] or ""
    kept = reasoning if thinking and reasoning.strip() else None
    assert found.reasoning == kept
    assert (found.content or "") == (fields["content"] or "")
    assert [
        (call.name, json.loads(call.arguments)) for call in found.tool_calls
    ] == fields["calls"]
    # Types too: 1 is not true and 1.0 is not 1.
    for call, (_, arguments) in zip(found.tool_calls, fields["calls"], strict=True):
        assert repr(json.loads(call.arguments)) == repr(arguments)


@settings(max_examples=30, deadline=None)
@given(fields=MESSAGES)
def test_the_next_turn_begins_with_the_answer_of_this_one(byte_tokenizer, fields):
    """Sent back, an answer is the same tokens: a prefix cache goes on from there."""
    ids = answer_ids(request(fields), byte_tokenizer, thinking=True)
    found = read(ids, byte_tokenizer, thinking=True)
    again = [{"role": "user", "content": "x"}, found.to_dict()]
    assert answer_ids(again, byte_tokenizer, thinking=True) == ids


@pytest.mark.parametrize("text", ["{oops", '{"a": 1', "no json", ' {"a": }\n'])
def test_text_that_is_not_json_comes_back_as_it_was(byte_tokenizer, text):
    messages = request({"content": "", "reasoning_content": "", "calls": [("f", {})]})
    messages[1]["tool_calls"][0]["function"]["arguments"] = text
    found = read(answer_ids(messages, byte_tokenizer, True), byte_tokenizer, True)
    assert found.tool_calls == (xtml.ToolCall("f", text),)


def test_a_trained_vocabulary_too(tokenizer):
    fields = {
        "content": "def f():\n    return '<|close|>response<|sep|>'",
        "reasoning_content": "汉字 naïve 😀",
        "calls": [("self.assert", {"text": 'a "b"', "n": [1, {"k": None}]})],
    }
    ids = answer_ids(request(fields), tokenizer, thinking=True)
    found = read(ids, tokenizer, thinking=True)
    assert found.problems == ()
    assert found.content == fields["content"]
    assert found.reasoning == fields["reasoning_content"]
    assert json.loads(found.tool_calls[0].arguments) == fields["calls"][0][1]


def test_report_26_ids_of_answers_survive_the_next_turn():
    calls = [("f", {}), ("g", {})]
    answer = xtml.parse(
        "".join(
            f'<|open|>call tool="{name}" index="{place}"<|sep|><|close|>call<|sep|>'
            for place, (name, _) in enumerate(calls, 1)
        )
    ).to_dict("call_8f")
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": call["id"]}
        for call in reversed(answer["tool_calls"])
    ]
    found = xtml.render([{"role": "user", "content": "x"}, answer, *results]).text
    end = "<|close|>message<|sep|><|end_of_msg|>"
    assert (
        f'<|open|>message role="tool" tool="f" index="1"<|sep|>call_8f_0{end}'
        f'<|open|>message role="tool" tool="g" index="2"<|sep|>call_8f_1{end}'
    ) in found
