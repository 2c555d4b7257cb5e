"""The system messages around a conversation, letter by letter."""

import pytest

from k3.data.xtml import options, segments
from k3.data.xtml.options import RenderOptions
from k3.errors import RequestError

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Météo",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
SCHEMA = {"type": "object", "properties": {"b": {}, "a": {"type": "string"}}}


def system(kind, words):
    return (
        f'<|open|>message role="system" type="{kind}"<|sep|>{words}'
        "<|close|>message<|sep|><|end_of_msg|>"
    )


def before(**wanted):
    return segments.join(options.before(RenderOptions(**wanted)))


def after(**wanted):
    return segments.join(options.after(RenderOptions(**wanted)))


def test_effort():
    assert before(thinking_effort="low") == system(
        "thinking-effort",
        "`thinking_effort` guides on how much to think in your thinking channel (not "
        "including the response channel), supported values include `low`, `medium`, "
        "`high`, and `max`.\nNow the system is invoked with `thinking_effort=low`.",
    )
    assert "`thinking_effort=max`." in before()
    assert before(thinking_effort=None) == ""
    assert before(thinking=False, thinking_effort="high") == ""


@pytest.mark.parametrize("effort", ["medium", "none", "", 3])
def test_other_efforts_are_refused(effort):
    with pytest.raises(RequestError) as caught:
        RenderOptions(thinking_effort=effort)
    assert str(caught.value) == (
        f"thinking_effort must be one of low, high, max: got {effort!r}; choose one, "
        "or thinking=False for no thinking"
    )


def test_tools_come_first():
    declared = system(
        "tool-declare",
        "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n"
        '[{"function":{"description":"Météo","name":"get_weather","parameters":'
        '{"properties":{"city":{"type":"string"}},"type":"object"}},'
        '"type":"function"}]\n```',
    )
    assert before(tools=[TOOL], thinking_effort=None) == declared
    assert before(tools=[TOOL]).startswith(declared)


def test_tool_choice():
    assert after(tool_choice="auto") == ""
    assert after(tools=[TOOL], tool_choice="required") == system(
        "tool-choice",
        "The system is invoked with `tool_choice=required`.\n"
        "You MUST call tools in the next message.",
    )
    assert after(tool_choice="none") == system(
        "tool-choice",
        "The system is invoked with `tool_choice=none`.\n"
        "You MUST NOT call any tools in the next message.",
    )


def test_a_named_tool_has_no_words():
    wanted = RenderOptions(tools=[TOOL], tool_choice=NAMED)
    assert wanted.named_tool == "get_weather"
    assert list(options.after(wanted)) == []
    assert RenderOptions().named_tool is None


def test_response_format():
    words = (
        "Your response must be raw JSON data without markdown code blocks (```json) "
        "or any additional formatting."
    )
    assert after(response_format={"type": "text"}) == ""
    assert after(response_format={"type": "json_object"}) == system(
        "response-format",
        f"The system is invoked with `response_format=json_object`.\n{words}",
    )
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    assert after(response_format=wanted) == system(
        "response-format",
        f"The system is invoked with `response_format=json_schema`.\n{words}\n"
        "The JSON data must match the following schema:\n```json\n"
        '{"properties":{"a":{"type":"string"},"b":{}},"type":"object"}\n```',
    )


def test_choice_comes_before_format():
    found = after(tool_choice="none", response_format={"type": "json_object"})
    assert found.index("tool-choice") < found.index("response-format")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"tools": TOOL}, "^tools must be a list: got an object"),
        ({"tools": ["f"]}, r"^tools\[0\] must be an object: got 'f'"),
        ({"tools": [{"type": "web"}]}, r"^tools\[0\]\.type must be one of function"),
        ({"tools": [{"type": "function"}]}, r"^tools\[0\]\.function must be an obj"),
        (
            {"tools": [TOOL, {"type": "function", "function": {"name": ""}}]},
            r"^tools\[1\]\.function\.name must be a string that is not empty: got ''",
        ),
        (
            {"tools": [{**TOOL, "x": {1}}]},
            r"^tools\[0\] must be a JSON value: Object of type set",
        ),
        ({"thinking": "yes"}, "^thinking must be true or false: got 'yes'; send one"),
        ({"continue_final_message": 1}, "^continue_final_message must be true or fal"),
        ({"add_generation_prompt": None}, "^add_generation_prompt must be true or"),
        ({"tool_choice": "any"}, "^tool_choice must be one of auto, none, required"),
        ({"tool_choice": {"type": "x"}}, r"^tool_choice\.type must be one of function"),
        (
            {"tool_choice": {"type": "function"}},
            r"^tool_choice\.function must be an object: got null",
        ),
        ({"response_format": "json"}, "^response_format must be an object: got 'json'"),
        ({"response_format": {}}, r"^response_format\.type must be one of text"),
        (
            {"response_format": {"type": "json_schema"}},
            r"^response_format\.json_schema must be an object: got null",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            r"^response_format\.json_schema\.schema must be an object: got null",
        ),
    ],
)
def test_wrong_options_are_refused(wanted, sentence):
    with pytest.raises(RequestError, match=sentence):
        RenderOptions(**wanted)


def test_a_required_tool_must_be_declared():
    with pytest.raises(RequestError, match="tool_choice must be auto or none when no"):
        options.check_choice(RenderOptions(tool_choice="required"), [])
    with pytest.raises(RequestError) as caught:
        options.check_choice(RenderOptions(tool_choice=NAMED), ["f"])
    assert str(caught.value) == (
        "tool_choice.function.name must be a declared tool: got 'get_weather'; declare "
        "it or choose one of ['f']"
    )
    options.check_choice(RenderOptions(tool_choice=NAMED), ["get_weather"])
    options.check_choice(RenderOptions(tool_choice="required"), ["f"])
