"""What a model is shown of its conversation, once that is longer than a harness keeps.

A turn is an answer with what followed it. The messages before the first answer stay.
"""

from collections.abc import Callable, Sequence
from typing import Any

from k3.envs.environment import Chat
from k3.envs.harness import task
from k3.envs.harness.harness import Harness

Turn = list[Chat]


def shown(messages: Sequence[Chat], harness: Harness, notes: str = "") -> list[Chat]:
    """The messages that are kept; `notes` are shown where whole turns are left out."""
    rule = harness.context
    head, turns = _turns(messages)
    drops: dict[str, Callable[[Turn], Turn]] = {
        "reasoning": _without_reasoning,
        "results": lambda turn: _without_results(turn, harness.words.dropped),
    }
    for name in rule.always:
        if name in drops:
            turns = [drops[name](turn) for turn in turns[:-1]] + turns[-1:]
    forgotten = 0
    for name in rule.over:
        for at in range(max(0, len(turns) - rule.keep_turns)):
            if _chars(head, turns) <= rule.most_chars:
                break
            if name == "turns":
                turns, forgotten = turns[1:], forgotten + 1
            else:
                turns[at] = drops[name](turns[at])
    if forgotten:
        said = harness.words.forgotten.replace("{turns}", str(forgotten))
        head = [
            *head,
            {"role": "user", "content": "\n\n".join(filter(None, (said, notes)))},
        ]
    return [*head, *(message for turn in turns for message in turn)]


def _turns(messages: Sequence[Chat]) -> tuple[list[Chat], list[Turn]]:
    head: list[Chat] = []
    turns: list[Turn] = []
    for message in messages:
        if message["role"] == "assistant":
            turns.append([])
        (turns[-1] if turns else head).append(message)
    return head, turns


def _chars(head: Sequence[Chat], turns: Sequence[Turn]) -> int:
    return sum(map(_size, head)) + sum(_size(m) for turn in turns for m in turn)


def _size(message: Chat) -> int:
    calls = message.get("tool_calls") or ()
    written = sum(len(call["function"]["arguments"]) for call in calls)
    thought = len(message.get("reasoning_content") or "")
    return len(task.text(message.get("content") or "")) + thought + written


def _without_reasoning(turn: Turn) -> Turn:
    kept: dict[str, Any] = {
        key: value
        for key, value in turn[0].items()
        if key not in ("reasoning", "reasoning_content")
    }
    return [kept, *turn[1:]]


def _without_results(turn: Turn, said: str) -> Turn:
    """Results by what is said in their place, where that is shorter; no pictures."""
    kept: Turn = [turn[0]]
    for message in turn[1:]:
        content = message.get("content") or ""
        words = task.text(content)
        short = said.replace("{left_out}", str(len(words)))
        longer = not isinstance(content, str) or len(words) > len(short)
        kept.append({**message, "content": short} if longer else message)
    return kept
