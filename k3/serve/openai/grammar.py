"""The grammar of a whole answer: channels, the format of the response, the calls.

Thinking is free text; the grammar of the response begins after the whole closing tag
of `think`. Markers are special tokens, which no text can spell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k3.data.xtml.options import RenderOptions
from k3.serve.openai import arguments

TAIL = '<|close|> "message" <|sep|>'
CLOSE_RESPONSE = '<|close|> "response" <|sep|>'


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What holds an answer to a form: its options, its tools, one call or several."""

    options: RenderOptions
    tools: Sequence[Mapping[str, Any]] = ()
    parallel: bool = True

    @property
    def callable(self) -> list[Mapping[str, Any]]:
        """The tools that may be called."""
        if self.options.tool_choice == "none":
            return []
        named = self.options.named_tool
        return [t for t in self.tools if named in (None, t["function"]["name"])]

    @property
    def must_call(self) -> bool:
        """Whether an answer without calls is refused."""
        return bool(self.tools) and self.options.tool_choice not in ("auto", "none")

    @property
    def needed(self) -> bool:
        """Whether anything is asked that the model must not be free to break."""
        formatted = self.options.response_format["type"] != "text"
        strict = any(t["function"].get("strict") is True for t in self.tools)
        narrow = self.options.tool_choice != "auto" or strict or not self.parallel
        return formatted or (bool(self.tools) and narrow)


def lark(wanted: Wanted, start_in: str) -> str:
    """The grammar of the answer to a prompt that ends inside `start_in`."""
    rules = ["%llguidance {}"]
    think = 'TEXT <|close|> "think" <|sep|> <|open|> "response" <|sep|> '
    rules.append(f"start: {think if start_in == 'think' else ''}body {TAIL}")
    rules.append(f"body: {_body(wanted)}")
    rules += _response(wanted.options.response_format)
    rules += _calls(wanted)
    # A special token is no text: its name cannot be spelled by one.
    rules += ["TEXT: /(.|\\n)*/", "INDEX: /[1-9][0-9]{0,3}/", 'KEY: /[^"\\n]+/']
    return "\n".join(rules)


def _body(wanted: Wanted) -> str:
    said, formatted = f"response {CLOSE_RESPONSE}", wanted.options.response_format
    if not wanted.callable:
        return said
    if wanted.must_call:
        return f"(response {CLOSE_RESPONSE} | {CLOSE_RESPONSE}) tools"
    if formatted["type"] == "text":
        return f"{said} tools?"
    # A formatted answer may be empty only where calls take its place.
    return f"{said} tools? | {CLOSE_RESPONSE} tools"


def _response(formatted: Mapping[str, Any]) -> Iterator[str]:
    kind = formatted["type"]
    if kind == "text":
        yield "response: TEXT"
        return
    schema: Mapping[str, Any] = {"type": "object"}
    if kind == "json_schema":
        schema = formatted["json_schema"]["schema"]
    yield f"response: {arguments.schema_of(schema, {})}"


def _calls(wanted: Wanted) -> Iterator[str]:
    tools = wanted.callable
    if not tools:
        return
    named = wanted.options.named_tool is not None
    many = "call" if named or not wanted.parallel else "call+"
    yield f'tools: <|open|> "tools" <|sep|> {many} <|close|> "tools" <|sep|>'
    yield "call: " + " | ".join(f"call_{place}" for place in range(len(tools)))
    for place, tool in enumerate(tools):
        yield from arguments.call(place, tool)
