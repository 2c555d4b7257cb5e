"""What is done when a conversation has outgrown its context: policies by name.

A policy takes the messages and how many of them opened the conversation, and gives
them one step shorter, or None where it has nothing left to take away. The opening and
the last turn always stay.
"""

from collections.abc import Callable, Sequence

from k3.envs.environment import Chat
from k3.errors import RequestError

HIDDEN = "[result no longer shown]"

Policy = Callable[[Sequence[Chat], int], list[Chat] | None]


def end(messages: Sequence[Chat], opening: int) -> None:
    """Nothing: the conversation ends."""
    return


def drop_oldest(messages: Sequence[Chat], opening: int) -> list[Chat] | None:
    """Leave out the oldest turn behind the opening: an answer and what followed it."""
    starts = _turns(messages, opening)
    if len(starts) < 2:
        return None
    return [*messages[: starts[0]], *messages[starts[1] :]]


def hide_results(messages: Sequence[Chat], opening: int) -> list[Chat] | None:
    """Replace the oldest tool result that still shows by a word that it is gone."""
    starts = _turns(messages, opening)
    last = starts[-1] if starts else len(messages)
    for place in range(opening, last):
        message = messages[place]
        if message["role"] == "tool" and message["content"] != HIDDEN:
            hidden = {**message, "content": HIDDEN}
            return [*messages[:place], hidden, *messages[place + 1 :]]
    return None


POLICIES: dict[str, Policy] = {
    "end": end,
    "drop_oldest": drop_oldest,
    "hide_results": hide_results,
}


def named(name: str) -> Policy:
    """The policy of this name. Raises: RequestError."""
    if name not in POLICIES:
        raise RequestError(
            f"a context policy is one of {', '.join(POLICIES)}: got {name!r}; choose "
            "one"
        )
    return POLICIES[name]


def _turns(messages: Sequence[Chat], opening: int) -> list[int]:
    """Where each answer behind the opening stands."""
    return [
        place
        for place in range(opening, len(messages))
        if messages[place]["role"] == "assistant"
    ]
