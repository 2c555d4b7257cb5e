"""Tools over a state: what is declared to a model, and what a call of it says back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k3.data.xtml import Message, ToolCall
from k3.envs.environment import Chat, results
from k3.errors import K3Error

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
FLAG = {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT}
_KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and value is not True,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A function of a model: JSON schemas of its arguments, and what it does.

    `act` takes the arguments by name and returns what is said; a K3Error is said too.
    """

    name: str
    description: str
    act: Callable[..., str]
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()

    @property
    def declared(self) -> dict[str, Any]:
        """The tool in the form of the OpenAI API."""
        parameters = {
            "type": "object",
            "properties": {key: dict(value) for key, value in self.properties.items()},
            "required": [key for key in self.properties if key not in self.optional],
            "additionalProperties": False,
        }
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}

    def wrong(self, arguments: object) -> str:
        """What is wrong with the arguments of a call, or nothing."""
        if not isinstance(arguments, dict):
            return "arguments must be a JSON object"
        for key in self.properties:
            if key not in arguments and key not in self.optional:
                return f"{self.name} needs {key}"
        for key, value in arguments.items():
            if key not in self.properties:
                return f"{self.name} has no argument {key}"
            schema = self.properties[key]
            if not _KINDS[schema["type"]](value):
                return f"{key} must be of type {schema['type']}"
            items = schema.get("items")
            if items and not all(map(_KINDS[items["type"]], value)):
                return f"{key} must hold values of type {items['type']}"
            if "enum" in schema and value not in schema["enum"]:
                return f"{key} must be one of {', '.join(schema['enum'])}"
        return ""


class Toolbox:
    """Tools by name; whatever a model calls gets an answer, never an exception."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def declared(self) -> list[dict[str, Any]]:
        """All tools in the form of the OpenAI API."""
        return [tool.declared for tool in self._tools.values()]

    def say(self, call: ToolCall) -> str:
        """What a call says back; "error: ..." where it could not be done."""
        tool = self._tools.get(call.name)
        if tool is None:
            return f"error: there is no tool {call.name}"
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return "error: arguments must be a JSON object"
        wrong = tool.wrong(arguments)
        if wrong:
            return f"error: {wrong}"
        try:
            return tool.act(**arguments)
        except K3Error as error:
            return f"error: {error}"

    def results(self, turn: int, message: Message) -> list[Chat]:
        """The results of all calls of an answer, in order."""
        return results(turn, [self.say(call) for call in message.tool_calls])
