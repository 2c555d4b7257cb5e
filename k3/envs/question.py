"""A question that one call of one tool answers: what is called, and what is said."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k3.data.xtml import Message, RenderOptions, ToolCall
from k3.envs import environment
from k3.envs.environment import Chat

MOST_CALLS = 3
"""Answers with calls before the environment ends."""

MOST_WORDS = 5
"""Words of an answer that says one thing."""

Arguments = Mapping[str, Any]


@dataclass(kw_only=True, slots=True)
class Question:
    """An environment: the tool is called with `needed`, then its result is said.

    `run` gives the tool's result for arguments that suit `tool`, or raises ValueError
    with what it says. The score is 1 for the needed call and then an answer that
    ends with its result, else 0: who guesses the answer has not called.
    """

    text: str
    tool: Mapping[str, Any]
    needed: Arguments
    run: Callable[[Arguments], str]
    called: bool = False
    answer: str | None = None
    best: float = 0.0
    turns: int = field(default=0, repr=False)

    @property
    def wanted(self) -> RenderOptions:
        """The tool, and no thinking."""
        return RenderOptions(tools=[self.tool], thinking=False)

    @property
    def result(self) -> str:
        """What the needed call returns."""
        return self.run(self.needed)

    def begin(self) -> list[Chat]:
        """The question."""
        return [{"role": "user", "content": self.text}]

    def reply(self, message: Message) -> list[Chat] | None:
        """Results of the calls; None after an answer without any, or too many."""
        turn, self.turns = self.turns, self.turns + 1
        if not message.tool_calls:
            self.answer = message.content or ""
            return None
        if self.turns > MOST_CALLS:
            return None
        return environment.results(turn, [self._call(c) for c in message.tool_calls])

    def score(self) -> float:
        """1 for the needed call and an answer of its result, else 0."""
        words = re.findall(r"-?\w+", self.answer or "")
        said = len(words) <= MOST_WORDS and words[-1:] == [self.result]
        return float(self.called and said)

    def credit(self) -> float:
        """From 0 to 1: how near the best call and the answer came; 1 is a score of 1.

        Each argument counts by how far it begins as the needed one, the answer only
        after the needed call.
        """
        if self.score():
            return 1.0
        words = re.findall(r"-?\w+", self.answer or "")[:MOST_WORDS] or [""]
        said = _share(words[-1], self.result) if self.called else 0.0
        return min(0.9, (self.best + said) / 2)

    def close(self) -> None:
        """Nothing is held."""

    def solve(self, messages: Sequence[Chat]) -> Message:
        """A perfect agent, which a cold start shows: the call, then what it gave."""
        if messages[-1]["role"] == "tool":
            return Message(None, f"It is {messages[-1]['content']}.", (), "stop")
        name = self.tool["function"]["name"]
        call = ToolCall(name, json.dumps(dict(self.needed)))
        return Message(None, None, (call,), "tool_calls")

    def _call(self, call: ToolCall) -> str:
        if call.name != self.tool["function"]["name"]:
            return f"no tool {call.name}"
        try:
            arguments = json.loads(call.arguments) if call.complete else None
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            return "the arguments are no JSON object"
        self.called |= arguments == self.needed
        near = [_share(arguments.get(k), v) for k, v in self.needed.items()]
        self.best = max(self.best, sum(near) / len(near))
        try:
            return self.run(arguments)
        except ValueError as fault:
            return str(fault)


def _share(said: Any, needed: Any) -> float:
    """How much of the needed text stands at the beginning of what was said."""
    text, whole = str(said), str(needed)
    pairs = enumerate(zip(text, whole, strict=False))
    shorter = min(len(text), len(whole))
    same = next((i for i, (a, b) in pairs if a != b), shorter)
    return same / max(len(text), len(whole), 1)
