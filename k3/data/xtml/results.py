"""Tool results: which call each belongs to, in which order they are shown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k3.data.xtml import check
from k3.errors import RequestError


@dataclass(frozen=True, slots=True)
class Turn:
    """A message with its place in the request and, for a result, tool and index."""

    place: int
    message: Mapping[str, Any]
    tool: str = ""
    index: int = 0

    @property
    def path(self) -> str:
        """How error sentences name the message."""
        return f"messages[{self.place}]"


@dataclass(frozen=True, slots=True)
class Call:
    """What a result needs to know of a call: its id, its tool."""

    id: str | None
    tool: str


def ordered(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The messages with each run of results in the order of the latest calls.

    A run is sorted only when every member names one of those calls by id; then the
    call's tool counts, whatever the result says. Indices start at 1 after each
    assistant message.
    Raises: RequestError for a result whose tool cannot be told.
    """
    turns: list[Turn] = []
    calls: list[Call] = []
    done, start = 0, 0
    while start < len(messages):
        role = messages[start].get("role")
        if role != "tool":
            if role == "assistant":
                calls, done = _calls(messages[start], f"messages[{start}]"), 0
            turns.append(Turn(start, messages[start]))
            start += 1
            continue
        stop = start
        while stop < len(messages) and messages[stop].get("role") == "tool":
            stop += 1
        run = [Turn(place, messages[place]) for place in range(start, stop)]
        turns += _resolved(run, calls, done)
        done, start = done + len(run), stop
    return turns


def _resolved(run: Sequence[Turn], calls: Sequence[Call], done: int) -> list[Turn]:
    found = _places([_id(turn) for turn in run], calls)
    pairs = list(zip(run, found, strict=True))
    if None not in found:
        pairs.sort(key=lambda pair: pair[1] or 0)
    matched = None not in found
    resolved = []
    for index, (turn, place) in enumerate(pairs, done + 1):
        own = None if place is None or not matched else calls[place].tool
        tool = own or _tool(turn, calls, index)
        resolved.append(Turn(turn.place, turn.message, tool, index))
    return resolved


def _places(ids: Sequence[str], calls: Sequence[Call]) -> list[int | None]:
    exact: dict[str, list[int]] = {}
    clean: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        if call.id is not None:
            exact.setdefault(call.id, []).append(place)
            clean.setdefault(_sanitised(call.id), []).append(place)
    found: list[int | None] = []
    for name in ids:
        same = exact.get(name) or clean.get(_sanitised(name), [])
        # Of calls with one id each result takes the next; the last serves the rest.
        found.append(same.pop(0) if len(same) > 1 else next(iter(same), None))
    return found


def _sanitised(name: str) -> str:
    """What proxies make of an id that they do not like."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _id(turn: Turn) -> str:
    for key in ("tool_call_id", "id"):
        if turn.message.get(key) is not None:
            return check.string(turn.message[key], f"{turn.path}.{key}")
    return ""


def _tool(turn: Turn, calls: Sequence[Call], index: int) -> str:
    for key in ("tool", "name"):
        if turn.message.get(key) is not None:
            return check.name(turn.message[key], f"{turn.path}.{key}")
    if index <= len(calls):
        return calls[index - 1].tool
    raise RequestError(
        f"{turn.path}.tool_call_id must be the id of a call in the assistant message "
        f"before it: got {check.shown(turn.message.get('tool_call_id'))} for result "
        f"{index} of {len(calls)} calls; send the assistant message with its "
        "tool_calls, or name the tool in `name`"
    )


def _calls(message: Mapping[str, Any], path: str) -> list[Call]:
    here = f"{path}.tool_calls"
    calls = check.sequence(message.get("tool_calls"), here, optional=True)
    return [_call(call, f"{here}[{index}]") for index, call in enumerate(calls)]


def _call(call: Any, path: str) -> Call:
    function = function_of(call, path)
    name = check.name(function.get("name"), f"{path}.function.name")
    if call.get("id") is None:
        return Call(None, name)
    return Call(check.string(call["id"], f"{path}.id"), name)


def function_of(call: Any, path: str) -> Mapping[str, Any]:
    """The `function` of a call, or the call itself when it has none.

    Raises: RequestError.
    """
    check.mapping(call, path)
    kind = call.get("type", "function")
    check.one_of(kind, f"{path}.type", ("function",), "other tools are not served")
    if call.get("function") is None:
        return call
    return check.mapping(call["function"], f"{path}.function")
