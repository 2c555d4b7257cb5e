"""A conversation as segments: declarations, history, one-shot options, prompt."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from k3.data.tokenizer import Tokenizer
from k3.data.xtml import check, content, options, results, segments, values
from k3.data.xtml.options import RenderOptions
from k3.data.xtml.segments import Segment
from k3.errors import RequestError

Channel = Literal["think", "response"]
ROLES = ("system", "developer", "user", "assistant", "tool")
_PLAIN = ("role", "content", "name")
_FIELDS = {
    "system": (*_PLAIN, "tools"),
    "developer": (*_PLAIN, "tools"),
    "user": _PLAIN,
    "assistant": (*_PLAIN, "reasoning_content", "reasoning", "tool_calls"),
    "tool": (*_PLAIN, "tool_call_id", "tool"),
}
# Clients send these back as they got them; they say nothing to the model.
_IGNORED = ("id", "annotations")
_NOTHING: tuple[Any, ...] = (None, False, [], {}, "")
_DEFAULT = RenderOptions()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation; `start_in` is the channel that the answer begins in."""

    segments: tuple[Segment, ...]
    start_in: Channel

    @property
    def text(self) -> str:
        """What it reads like; user text may spell markers, so never encode this."""
        return segments.join(self.segments)

    def encode(self, tokenizer: Tokenizer) -> list[int]:
        """The ids, segment by segment.

        Raises: RequestError when the vocabulary lacks a marker.
        """
        return segments.encode(self.segments, tokenizer)


def render(
    messages: Any,
    wanted: RenderOptions = _DEFAULT,
    images: Sequence[str] | None = (),
) -> Prompt:
    """The prompt of a list of OpenAI-style messages, as the release renders them.

    `images` holds one `media.prompt_text` per image part, in order; None leaves the
    placeholder text in their place.
    Raises: RequestError whose first word is the field.
    """
    _check(messages)
    options.check_choice(wanted, _declared(messages, wanted))
    media = content.Media(images)
    turns = results.ordered(messages)
    last = turns.pop() if wanted.continue_final_message else None
    pieces = list(options.before(wanted))
    for turn in turns:
        pieces += message(turn, wanted.thinking, media)
    pieces += options.after(wanted)
    start_in: Channel = "think" if wanted.thinking else "response"
    if last is not None:
        start_in = _continued_channel(last, wanted.thinking)
        pieces += _continued(last, wanted.thinking, media)
    elif wanted.add_generation_prompt:
        pieces += segments.opening("message", {"role": "assistant"})
        pieces += segments.opening(start_in)
    media.finish()
    return Prompt(tuple(piece for piece in pieces if piece.text), start_in)


def message(
    turn: results.Turn, thinking: bool, media: content.Media
) -> Iterator[Segment]:
    """The segments of one message of the history."""
    found, role = turn.message, turn.message["role"]
    if found.get("tools"):
        yield from options.declaration(
            found["tools"], f"{turn.path}.tools", dynamic=True
        )
        return
    if role == "tool":
        attributes = {"role": role, "tool": turn.tool, "index": str(turn.index)}
    else:
        attributes = _attributes(turn)
    if role == "assistant":
        body = assistant(found, turn.path, thinking, media)
    else:
        body = content.body(found.get("content"), f"{turn.path}.content", media)
    yield from segments.message(attributes, body)


def assistant(
    found: Mapping[str, Any], path: str, thinking: bool, media: content.Media
) -> Iterator[Segment]:
    """The channels of an assistant message: think, response, tools."""
    if thinking:
        yield from segments.element("think", {}, segments.text(_reasoning(found, path)))
    body = content.body(found.get("content"), f"{path}.content", media)
    yield from segments.element("response", {}, body)
    here = f"{path}.tool_calls"
    calls = check.sequence(found.get("tool_calls"), here, optional=True)
    if calls:
        yield from segments.opening("tools")
        for index, call in enumerate(calls):
            yield from _call(call, index, f"{here}[{index}]")
        yield from segments.closing("tools")


def _call(call: Any, index: int, path: str) -> Iterator[Segment]:
    function = results.function_of(call, path)
    name = check.name(function.get("name"), f"{path}.function.name")
    here = f"{path}.function.arguments"
    arguments = values.arguments(function.get("arguments"), here)
    yield from segments.opening("call", {"tool": name, "index": str(index + 1)})
    if isinstance(arguments, str):
        yield from segments.element("json", {"type": "object"}, [Segment(arguments)])
        arguments = {}
    for key, value in arguments.items():
        spot = f"{here}.{check.string(key, here)}"
        attributes = {"key": key, "type": values.type_of(value, spot)}
        body = segments.text(values.body(value, spot))
        yield from segments.element("argument", attributes, body)
    yield from segments.closing("call")


def _reasoning(found: Mapping[str, Any], path: str) -> str:
    for key in ("reasoning_content", "reasoning"):
        words = check.string(found.get(key), f"{path}.{key}", optional=True)
        if words:
            # The first field that says anything counts; blank text says nothing.
            return words if words.strip() else ""
    return ""


def _attributes(turn: results.Turn) -> dict[str, str]:
    role = turn.message["role"]
    attributes = {"role": "system" if role == "developer" else role}
    name = check.string(turn.message.get("name"), f"{turn.path}.name", optional=True)
    return {**attributes, "name": name} if name else attributes


def _continued_channel(turn: results.Turn, thinking: bool) -> Channel:
    if turn.message["role"] != "assistant":
        raise RequestError(
            f"{turn.path}.role must be assistant with continue_final_message: got "
            f"{turn.message['role']!r}; add the message to continue"
        )
    if turn.message.get("tool_calls"):
        raise RequestError(
            f"{turn.path}.tool_calls must be empty with continue_final_message: a "
            "message with calls is complete; send their results"
        )
    blank = content.is_blank(turn.message.get("content"))
    return "think" if thinking and blank else "response"


def _continued(
    turn: results.Turn, thinking: bool, media: content.Media
) -> list[Segment]:
    """The last message up to where it goes on: in think until it has content."""
    body = list(assistant(turn.message, turn.path, thinking, media))
    channel = _continued_channel(turn, thinking)
    response = list(segments.element("response", {}, ()))
    closed = list(segments.closing(channel))
    if channel == "think":
        body = body[: -len(response)]
    return [*segments.opening("message", _attributes(turn)), *body[: -len(closed)]]


def _declared(
    messages: Sequence[Mapping[str, Any]], wanted: RenderOptions
) -> list[str]:
    tools = [*wanted.tools]
    for found in messages:
        tools += found.get("tools") or ()
    return [tool["function"]["name"] for tool in tools]


def _check(messages: Any) -> None:
    if not check.sequence(messages, "messages"):
        raise RequestError("messages must hold at least one message: got none; add one")
    for place, found in enumerate(messages):
        path = f"messages[{place}]"
        role = check.mapping(found, path).get("role")
        role = check.one_of(role, f"{path}.role", ROLES, "choose one")
        _check_fields(found, role, path)
        needs_content = role in ("user", "system", "developer")
        if needs_content and not found.get("tools") and found.get("content") is None:
            raise check.refuse(f"{path}.content", "text or parts", None, "send text")


def _check_fields(found: Mapping[str, Any], role: str, path: str) -> None:
    for key, value in found.items():
        if key not in (*_FIELDS[role], *_IGNORED) and value not in _NOTHING:
            raise RequestError(
                f"{path}.{key} must be absent: a {role} message has "
                f"{', '.join(_FIELDS[role])}; remove it"
            )
    if not found.get("tools"):
        return
    options.check_tools(found["tools"], f"{path}.tools")
    if not content.is_blank(found.get("content")):
        raise RequestError(
            f"{path}.content must be empty where `tools` are declared: the release "
            "does not show it; put it into a message of its own"
        )
