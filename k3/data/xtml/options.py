"""What a request asks for besides its messages, and the system messages that say so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k3.data.xtml import check, segments, values
from k3.data.xtml.segments import Segment
from k3.errors import RequestError

EFFORTS = ("low", "high", "max")
CHOICES = ("auto", "none", "required")
FORMATS = ("text", "json_object", "json_schema")
_FENCE = "```json\n{}\n```"
_STATIC_TOOLS = "# Tools\nHere are the available tools, described in JSONSchema.\n\n"
_NEW_TOOLS = (
    "## New Tools Available\n"
    "The system dynamically extends the toolset via lazy-loading.\n"
    "You have access to all existing and extended tools.\n"
    "Here are the specs for the extended tools.\n\n"
)
_EFFORT = (
    "`thinking_effort` guides on how much to think in your thinking channel (not "
    "including the response channel), supported values include `low`, `medium`, "
    "`high`, and `max`.\nNow the system is invoked with `thinking_effort={}`."
)
_CHOICE = {
    "required": "The system is invoked with `tool_choice=required`.\n"
    "You MUST call tools in the next message.",
    "none": "The system is invoked with `tool_choice=none`.\n"
    "You MUST NOT call any tools in the next message.",
}
_FORMAT = (
    "The system is invoked with `response_format={}`.\n"
    "Your response must be raw JSON data without markdown code blocks (```json) or "
    "any additional formatting."
)
_SCHEMA = "\nThe JSON data must match the following schema:\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderOptions:
    """How a conversation is rendered. Field names are those of the HTTP request.

    Values come from clients, so every one is checked here, not by its annotation.
    `thinking_effort` None says nothing about effort; without `thinking` it is not
    said either. `continue_final_message` leaves the last message, an assistant's,
    open; it takes the place of the generation prompt.
    """

    tools: Any = ()
    thinking: Any = True
    thinking_effort: Any = "max"
    tool_choice: Any = "auto"
    response_format: Any = field(default_factory=lambda: {"type": "text"})
    add_generation_prompt: Any = True
    continue_final_message: Any = False

    def __post_init__(self) -> None:
        for flag in ("thinking", "add_generation_prompt", "continue_final_message"):
            check.flag(getattr(self, flag), flag)
        check_tools(self.tools, "tools")
        if self.thinking_effort is not None:
            check.one_of(
                self.thinking_effort,
                "thinking_effort",
                EFFORTS,
                "choose one, or thinking=False for no thinking",
            )
        if isinstance(self.tool_choice, Mapping):
            self._check_named_choice(self.tool_choice)
        else:
            remedy = 'choose one, or {"type": "function", "function": {"name": ...}}'
            check.one_of(self.tool_choice, "tool_choice", CHOICES, remedy)
        _check_format(self.response_format)

    @property
    def named_tool(self) -> str | None:
        """The tool that `tool_choice` names, if it names one."""
        if isinstance(self.tool_choice, str):
            return None
        return self.tool_choice["function"]["name"]

    def _check_named_choice(self, choice: Mapping[str, Any]) -> None:
        check.one_of(choice.get("type"), "tool_choice.type", ("function",), "use it")
        function = check.mapping(choice.get("function"), "tool_choice.function")
        check.name(function.get("name"), "tool_choice.function.name")


def before(options: RenderOptions) -> Iterator[Segment]:
    """What precedes the messages: the tools, then how much to think."""
    if options.tools:
        yield from declaration(options.tools, "tools", dynamic=False)
    if options.thinking and options.thinking_effort is not None:
        yield from _system("thinking-effort", _EFFORT.format(options.thinking_effort))


def after(options: RenderOptions) -> Iterator[Segment]:
    """What holds for the next answer alone; after the history, so prefixes last.

    A named tool has no words of its own: the sampler's grammar sees to it.
    """
    if isinstance(options.tool_choice, str) and options.tool_choice in _CHOICE:
        yield from _system("tool-choice", _CHOICE[options.tool_choice])
    kind = options.response_format["type"]
    if kind == "text":
        return
    words = _FORMAT.format(kind)
    if kind == "json_schema":
        schema = options.response_format["json_schema"]["schema"]
        path = "response_format.json_schema.schema"
        words += _SCHEMA + _FENCE.format(values.compact(schema, path))
    yield from _system("response-format", words)


def declaration(
    tools: Sequence[Mapping[str, Any]], path: str, *, dynamic: bool
) -> Iterator[Segment]:
    """The system message that declares tools, at the start or on the way."""
    words = _NEW_TOOLS if dynamic else _STATIC_TOOLS
    yield from _system(
        "tool-declare", words + _FENCE.format(values.compact(tools, path))
    )


def check_tools(tools: Any, path: str) -> Sequence[Mapping[str, Any]]:
    """Declared tools: `{"type": "function", "function": {"name": ...}}` each.

    Raises: RequestError.
    """
    for index, tool in enumerate(check.sequence(tools, path)):
        here = f"{path}[{index}]"
        check.mapping(tool, here)
        check.one_of(tool.get("type"), f"{here}.type", ("function",), "use it")
        function = check.mapping(tool.get("function"), f"{here}.function")
        check.name(function.get("name"), f"{here}.function.name")
        values.compact(tool, here)
    return tools


def check_choice(options: RenderOptions, declared: Sequence[str]) -> None:
    """A tool that must be called has to be declared.

    Raises: RequestError.
    """
    if options.tool_choice == "required" and not declared:
        raise RequestError(
            "tool_choice must be auto or none when no tools are declared: got "
            "'required'; declare tools"
        )
    if options.named_tool is not None and options.named_tool not in declared:
        raise RequestError(
            "tool_choice.function.name must be a declared tool: got "
            f"{options.named_tool!r}; declare it or choose one of {list(declared)}"
        )


def _check_format(wanted: Any) -> None:
    path = "response_format"
    kind = check.mapping(wanted, path).get("type")
    check.one_of(kind, f"{path}.type", FORMATS, "choose one")
    if kind == "json_schema":
        outer = check.mapping(wanted.get("json_schema"), f"{path}.json_schema")
        schema = check.mapping(outer.get("schema"), f"{path}.json_schema.schema")
        values.compact(schema, f"{path}.json_schema.schema")


def _system(kind: str, words: str) -> Iterator[Segment]:
    return segments.message({"role": "system", "type": kind}, segments.text(words))
