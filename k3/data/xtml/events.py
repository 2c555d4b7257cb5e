"""What the parser reports, and the message that the reports add up to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Reason = Literal["stop", "stop_text", "length", "abort"]
PROBLEMS = {
    "unclosed": "an element ended without its closing tag",
    "no separator": "a tag without its <|sep|>",
    "cut tag": "the answer was cut inside a tag",
    "not a tag": "a marker that forms no tag, kept as text",
    "stray close": "a closing tag of an element that is not open, left out",
    "stray text": "text where no text belongs; kept as content, in `tools` left out",
    "unknown element": "an element with an unknown name; between channels its body is "
    "content, elsewhere the tags are kept as text",
    "message tag": "a message was opened inside the message",
    "special token": "a special token that is no marker, left out",
    "no tool": "a call without a tool name, left out",
    "index": "a call whose index is absent or not its place; its place counts",
    "no key": "an argument without a key, left out",
    "duplicate key": "a key given twice in one call; the first one counts",
    "type": "an argument whose value has another type; the value counts",
    "unknown type": "an argument without a known type; JSON if it is, else a string",
    "invalid JSON": "a value that is not JSON, kept as a string",
    "invalid arguments": "the text of a call is not a JSON object",
    "cut call": "the answer was cut inside a call; its arguments are incomplete",
}


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of the think channel."""

    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """More of the response channel."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins; calls are counted from 0 in the order they come."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The arguments of a call are complete."""

    index: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A slip of the model; `kind` is a key of PROBLEMS."""

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """The answer is over; `complete` says that the model closed it itself."""

    reason: Reason
    complete: bool


Event: TypeAlias = (
    Reasoning | Content | CallStart | CallArguments | CallEnd | Problem | End
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call: the tool's name and the JSON text of its arguments.

    `complete` is False when the answer was cut inside it: then the text is not JSON,
    so nothing can be run by mistake.
    """

    name: str
    arguments: str
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """An assistant message; reasoning is None when there is none.

    Content is None when there is none, but "" for a complete answer without calls.
    """

    reasoning: str | None
    content: str | None
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str | None
    problems: tuple[Problem, ...] = ()

    def to_dict(self, call_prefix: str = "call") -> dict[str, Any]:
        """The message of the HTTP answer; ids are `{call_prefix}_{index}`."""
        found: dict[str, Any] = {
            "role": "assistant",
            "content": self.content,
            "reasoning_content": self.reasoning,
            "reasoning": self.reasoning,
        }
        if self.tool_calls:
            found["tool_calls"] = [
                {
                    "id": f"{call_prefix}_{index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(self.tool_calls)
            ]
        return found


def assemble(events: Iterable[Event]) -> Message:
    """The message that a stream of events amounts to, however it was cut.

    finish_reason is None until the stream has ended.
    """
    texts: dict[type, list[str]] = {Reasoning: [], Content: []}
    calls: list[ToolCall] = []
    arguments: list[list[str]] = []
    problems: list[Problem] = []
    end: End | None = None
    for event in events:
        match event:
            case Reasoning(text) | Content(text):
                texts[type(event)].append(text)
            case CallStart(_, name):
                calls.append(ToolCall(name, "", complete=False))
                arguments.append([])
            case CallArguments(index, text):
                arguments[index].append(text)
            case CallEnd(index):
                calls[index] = ToolCall(calls[index].name, "")
            case Problem():
                problems.append(event)
            case End():
                end = event
    whole = tuple(
        ToolCall(call.name, "".join(parts), call.complete)
        for call, parts in zip(calls, arguments, strict=True)
    )
    reason = None if end is None else finish_reason(end, whole)
    content = "".join(texts[Content]) or None
    if content is None and end is not None and end.complete and not whole:
        content = ""
    reasoning = "".join(texts[Reasoning]) or None
    return Message(reasoning, content, whole, reason, tuple(problems))


def finish_reason(end: End, calls: Iterable[ToolCall]) -> str:
    """OpenAI's word: calls count once the answer is complete or a stop text came."""
    found = list(calls)
    if end.reason in ("length", "abort") and not end.complete:
        return end.reason
    whole = bool(found) and all(call.complete for call in found)
    return "tool_calls" if whole else "stop"
