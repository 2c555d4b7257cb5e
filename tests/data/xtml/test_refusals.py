"""What the renderer refuses: each sentence begins with the field."""

import pytest

from k3.data.xtml import RenderOptions, render
from k3.errors import RequestError

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f"}}


def asked(arguments):
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]}


def test_only_an_assistant_without_calls_is_continued():
    wanted = RenderOptions(continue_final_message=True)
    with pytest.raises(RequestError, match=r"^messages\[0\]\.role must be assistant w"):
        render([USER], wanted)
    with pytest.raises(RequestError, match=r"^messages\[1\]\.tool_calls must be empty"):
        render([USER, asked({})], wanted)


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ("Hi", "^messages must be a list: got 'Hi'; send a JSON array"),
        (None, "^messages must be a list: got null"),
        ([], "^messages must hold at least one message: got none; add one"),
        (["Hi"], r"^messages\[0\] must be an object: got 'Hi'; send a JSON object"),
        ([USER, {}], r"^messages\[1\]\.role must be one of system, developer, user"),
        ([{"role": ["user"]}], r"^messages\[0\]\.role must be one of .*: got a list"),
        (
            [{"role": "function"}],
            r"^messages\[0\]\.role .*: got 'function'; choose one",
        ),
        (
            [{"role": "user"}],
            r"^messages\[0\]\.content must be text or parts: got null",
        ),
        ([{**USER, "name": 3}], r"^messages\[0\]\.name must be a string or null"),
        (
            [{**USER, "tools": [TOOL]}],
            r"^messages\[0\]\.tools must be absent: a user message has role, content, "
            "name; remove it",
        ),
        (
            [{"role": "system", "content": "x", "tools": [TOOL]}],
            r"^messages\[0\]\.content must be empty where `tools` are declared: the ",
        ),
        (
            [{"role": "system", "tools": [{}]}],
            r"^messages\[0\]\.tools\[0\]\.type must be one of function: got null",
        ),
        (
            [{"role": "assistant", "reasoning": {}}],
            r"^messages\[0\]\.reasoning must be a string or null: got an object",
        ),
        (
            [USER, asked("[1]")],
            r"^messages\[1\]\.tool_calls\[0\]\.function\.arguments must be the JSON te",
        ),
        (
            [asked({"k": {1}})],
            r"^messages\[0\]\.tool_calls\[0\]\.function\.arguments\.k must be a JSON v",
        ),
        ([asked({3: 1})], r"function\.arguments must be a string: got 3"),
        (
            [{"role": "tool", "content": "x"}],
            r"^messages\[0\]\.tool_call_id must be the id of a call",
        ),
    ],
)
def test_wrong_messages_name_their_field(messages, sentence):
    with pytest.raises(RequestError, match=sentence):
        render(messages)
