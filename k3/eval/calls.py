"""Whether tool calls are what the tools declare: name, keys, types, choices."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from k3.data import xtml
from k3.data.xtml import values

Tools = Sequence[Mapping[str, Any]]


def valid(message: xtml.Message, tools: Tools) -> bool:
    """At least one call, all whole and as declared, and no slip in the format."""
    calls = message.tool_calls
    return bool(calls) and not message.problems and all(fits(c, tools) for c in calls)


def fits(call: xtml.ToolCall, tools: Tools) -> bool:
    """Whether a declared tool has this name and takes these arguments."""
    found = [t["function"] for t in tools if t["function"]["name"] == call.name]
    if not found or not call.complete:
        return False
    return matches(json.loads(call.arguments), found[0].get("parameters", {}))


def matches(value: Any, schema: Mapping[str, Any]) -> bool:
    """JSON Schema's type, enum, properties, required and additionalProperties."""
    wanted = schema.get("type")
    if wanted is not None and values.type_of(value, "value") != wanted:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if not isinstance(value, Mapping):
        return True
    properties = schema.get("properties", {})
    known = all(key in properties for key in value)
    if not known and not schema.get("additionalProperties", True):
        return False
    return all(key in value for key in schema.get("required", ())) and all(
        matches(part, properties[key])
        for key, part in value.items()
        if key in properties
    )


def asked(calls: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """Name and arguments of the calls of a message as clients write it."""
    functions = [call["function"] for call in calls]
    return [(f["name"], json.loads(f["arguments"])) for f in functions]


def given(message: xtml.Message) -> list[tuple[str, Any]]:
    """Name and arguments of the calls that a model made; None where they are cut."""
    return [
        (call.name, json.loads(call.arguments) if call.complete else None)
        for call in message.tool_calls
    ]
