"""How calls are written: natively, as thought and action, or as a fenced block."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from k3.data.xtml import Message, ToolCall
from k3.envs.harness.harness import Harness


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """Calls by name and JSON text, or the answer; a slip is a sentence about it."""

    calls: tuple[tuple[str, str], ...] = ()
    answer: str | None = None
    slip: str = ""


def read(message: Message, harness: Harness) -> Said:
    """What an answer calls, or answers."""
    return _READ[harness.format](message, harness)


def write(
    harness: Harness, name: str, given: Mapping[str, Any], thought: str = ""
) -> Message:
    """The answer that makes one call."""
    return _WRITE[harness.format](harness, name, given, thought)


def conclude(harness: Harness, answer: str, thought: str = "") -> Message:
    """The last answer, where it is given as text."""
    if harness.format == "native":
        return Message(thought or None, answer, (), "stop")
    words = harness.words
    return _plain(f"{words.thought} {thought}\n{words.answer} {answer}")


def _read_native(message: Message, harness: Harness) -> Said:
    if any(not call.complete for call in message.tool_calls):
        return Said(slip="Error: the answer was cut inside a call; write it again.")
    if message.tool_calls:
        return Said(calls=tuple((c.name, c.arguments) for c in message.tool_calls))
    if message.finish_reason == "length":
        return Said(slip="Error: the answer was cut; write it shorter.")
    return Said(answer=message.content or "")


def _read_react(message: Message, harness: Harness) -> Said:
    """The first action; what the model itself says that it heard is not read."""
    words = harness.words
    text = _lines_until(message.content or "", words.heard)
    action = _after(text, words.action)
    answer = _after(text, words.answer)
    if action and (not answer or action.start() < answer.start()):
        given = _after(text[action.end() :], words.given)
        name = text[action.end() :].strip().split("\n", 1)[0].strip()
        if given is None:
            return Said(slip=f"Error: {words.action} needs {words.given} after it.")
        return Said(calls=((name, text[action.end() + given.end() :].strip()),))
    if answer:
        return Said(answer=text[answer.end() :].strip())
    return Said(slip=words.nudge)


def _read_fenced(message: Message, harness: Harness) -> Said:
    fence = re.escape(harness.words.fence)
    found = re.findall(
        rf"^```{fence}[ \t]*\n(.*?)^```[ \t]*$",
        message.content or "",
        re.MULTILINE | re.DOTALL,
    )
    line = harness.line
    assert line is not None, "a fenced harness has a tool with commands"
    if len(found) != 1:
        return Said(slip=f"Error: got {len(found)} blocks. {harness.words.nudge}")
    key = next(iter(line.arguments), "command")
    return Said(calls=((line.name, json.dumps({key: found[0]})),))


def _lines_until(text: str, marker: str) -> str:
    found = _after(text, marker)
    return text[: found.start()] if found else text


def _after(text: str, marker: str) -> re.Match[str] | None:
    """Where a marker begins a line."""
    return re.search(rf"^[ \t]*{re.escape(marker)}", text, re.MULTILINE)


def _write_native(
    harness: Harness, name: str, given: Mapping[str, Any], thought: str
) -> Message:
    call = ToolCall(name, json.dumps(dict(given), ensure_ascii=False))
    return Message(thought or None, None, (call,), "tool_calls")


def _write_react(
    harness: Harness, name: str, given: Mapping[str, Any], thought: str
) -> Message:
    words, body = harness.words, json.dumps(dict(given), ensure_ascii=False)
    return _plain(
        f"{words.thought} {thought}\n{words.action} {name}\n{words.given} {body}"
    )


def _write_fenced(
    harness: Harness, name: str, given: Mapping[str, Any], thought: str
) -> Message:
    line = str(next(iter(given.values())))
    return _plain(f"{thought}\n```{harness.words.fence}\n{line}\n```".lstrip())


def _plain(text: str) -> Message:
    return Message(None, text, (), "stop")


_READ: dict[str, Callable[[Message, Harness], Said]] = {
    "native": _read_native,
    "react": _read_react,
    "fenced": _read_fenced,
}
_WRITE: dict[str, Callable[[Harness, str, Mapping[str, Any], str], Message]] = {
    "native": _write_native,
    "react": _write_react,
    "fenced": _write_fenced,
}
