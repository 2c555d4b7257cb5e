"""Facts of the chat layout (App. E, release notes §4): order, indices and channels."""

import json
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

Item = TypeVar("Item")
Mode = Literal["thinking", "instruct"]


def layout(
    declared: Sequence[Item], history: Sequence[Item], one_shot: Sequence[Item]
) -> list[Item]:
    """Global options, then the history, then what holds for one answer only.

    Changing the last part keeps the prefix, so a cached prefix survives.
    """
    return [*declared, *history, *one_shot]


def indexed(calls: Sequence[Item]) -> list[tuple[int, Item]]:
    """Tool calls of one message, and results of one run, are counted from 1."""
    return list(enumerate(calls, 1))


def ordered_results(
    calls: Sequence[str], results: Sequence[tuple[str, Item]]
) -> list[tuple[str, Item]]:
    """A run of results (call id, body) in the order of the latest assistant's calls.

    Sorted only if every member names one of those calls; otherwise as they came.
    """
    if all(name in calls for name, _ in results):
        return sorted(results, key=lambda result: list(calls).index(result[0]))
    return list(results)


def channels(mode: Mode, calls: int) -> list[str]:
    """Channels of a past assistant message: think iff thinking mode, then response,
    and tools if it made calls.
    """
    think = ["think"] if mode == "thinking" else []
    return [*think, "response", *(["tools"] if calls else [])]


def generation_channel(mode: Mode) -> str:
    """The channel that the generation prefix opens."""
    return "think" if mode == "thinking" else "response"


def argument(value: Any, reading: Literal["release", "paper"] = "release") -> str:
    """The text of a call's argument: a string as it is, anything else as JSON.

    The release separates by ", " and ": "; the paper says compactly, "," and ":".
    """
    if isinstance(value, str):
        return value
    separators = None if reading == "release" else (",", ":")
    return json.dumps(value, ensure_ascii=False, separators=separators)


def escape(value: str) -> str:
    """An attribute's text: & first, then the quotation mark; bodies stay as is."""
    return value.replace("&", "&amp;").replace('"', "&quot;")
