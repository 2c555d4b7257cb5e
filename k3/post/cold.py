"""What a cold start is fine-tuned on: dialogues of agents that solve their tasks."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from k3.data.tasks.lot import Split
from k3.data.xtml import Message, RenderOptions
from k3.envs import environment, registry
from k3.envs.environment import Chat
from k3.errors import RequestError

TURNS = 64


@runtime_checkable
class Solved(Protocol):
    """An environment that knows a perfect agent."""

    def solve(self, messages: Sequence[Chat]) -> Message:
        """The agent's next answer."""


class Taped:
    """The perfect agent of an environment; `said` is all that was said so far."""

    def __init__(self, world: Solved) -> None:
        self.world = world
        self.said: list[Chat] = []

    def __call__(self, messages: Sequence[Chat]) -> Message:
        """Its next answer."""
        answer = self.world.solve(messages)
        self.said = [*messages, environment.said(answer, len(messages))]
        return answer


def dialogues(
    name: str, indexes: range, split: Split = "train"
) -> Iterator[dict[str, Any]]:
    """Lines for `k3 sft`: what a perfect agent does with instances of an environment.

    Raises: RequestError for an environment that knows none.
    """
    make = registry.named(name)
    for index in indexes:
        world = make(split, index)
        if not isinstance(world, Solved):
            raise RequestError(
                f"a cold start needs an environment that can be solved: got {name}, "
                "which has no solve(); choose another one"
            )
        taped = Taped(world)
        wanted = world.wanted
        environment.play(world, taped, TURNS)
        yield line(taped.said, wanted)


def line(messages: Sequence[Chat], wanted: RenderOptions) -> dict[str, Any]:
    """A conversation as k3.data.conversations reads it."""
    names = ("tools", "thinking", "thinking_effort")
    options = {name: getattr(wanted, name) for name in names}
    return {"messages": list(messages), **options, "tools": list(wanted.tools)}
