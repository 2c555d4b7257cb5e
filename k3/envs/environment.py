"""An environment: messages in, what tools say out, a score at the end.

It knows no tokens and no model. Whoever plays it (a scripted agent, an engine, a
client of a server) hands it messages as `k3.data.xtml` parses them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from k3.data.xtml import Message, RenderOptions

Chat = Mapping[str, Any]
"""A message in the form of the OpenAI API, as the renderer of XTML takes it."""


@runtime_checkable
class Environment(Protocol):
    """One instance of a task, with a state of its own."""

    @property
    def wanted(self) -> RenderOptions:
        """The tools, the effort, and how the conversation is rendered."""

    def begin(self) -> list[Chat]:
        """The messages before the first answer."""

    def reply(self, message: Message) -> list[Chat] | None:
        """What follows an answer: results of its calls, or a user; None at the end."""

    def score(self) -> float:
        """From 0 to 1, once it has ended; the same each time it is asked."""

    def close(self) -> None:
        """Free what it holds; twice is as good as once."""


Agent = Callable[[Sequence[Chat]], Message]
"""The next answer, from all messages so far."""


def play(environment: Environment, agent: Agent, turns: int = 64) -> float:
    """Let an agent act until the environment ends, or `turns` answers; the score.

    The environment is closed, whatever happens.
    """
    try:
        messages = list(environment.begin())
        for turn in range(turns):
            answer = agent(messages)
            messages.append(said(answer, turn))
            heard = environment.reply(answer)
            if heard is None:
                break
            messages += heard
        return environment.score()
    finally:
        environment.close()


def said(answer: Message, turn: int) -> Chat:
    """An answer as a message of the conversation, its calls named by 0-based turn."""
    return answer.to_dict(f"turn{turn}")


def results(turn: int, contents: Sequence[str]) -> list[Chat]:
    """What the tools that the answer of this turn called have said, in order."""
    return [
        {"role": "tool", "tool_call_id": f"turn{turn}_{index}", "content": content}
        for index, content in enumerate(contents)
    ]
