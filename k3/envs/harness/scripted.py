"""Agents that follow a script of abilities, whatever the harness calls them.

The task's own script makes a perfect agent, and so the examples of a cold start.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from k3.data.xtml import Message
from k3.envs.environment import Agent, Chat
from k3.envs.harness import wording
from k3.envs.harness.task import SUBMIT, Content, Steps, worded

if TYPE_CHECKING:
    from k3.envs.harness.environment import Harnessed


def solver(played: "Harnessed") -> Agent:
    """The task's perfect agent."""
    return agent(played, played.task.solve())


def agent(played: "Harnessed", steps: Steps) -> Agent:
    """An agent that asks what a script asks, and submits what it returns."""
    begun = False

    def answer(messages: Sequence[Chat]) -> Message:
        nonlocal begun
        try:
            if begun:
                asked = steps.send(_heard(played, messages[-1]))
            else:
                begun, asked = True, next(steps)
        except StopIteration as ended:
            return submission(played, ended.value)
        return asking(played, *asked)

    return answer


def asking(
    played: "Harnessed", ability: str, given: Mapping[str, Any], thought: str = ""
) -> Message:
    """The answer that uses an ability, in the harness's names and format."""
    name, arguments = played.surface.call(ability, given)
    return wording.write(played.harness, name, arguments, thought)


def submission(played: "Harnessed", answer: str) -> Message:
    """The last answer, as the harness wants it given."""
    if played.harness.answer == "text":
        return wording.conclude(played.harness, answer)
    return asking(played, SUBMIT, {"answer": answer})


def _heard(played: "Harnessed", message: Chat) -> Content:
    """What a tool said, without the harness's words around it."""
    before, after = played.harness.words.result.split("{result}")
    content: Content = message["content"]
    return worded(content, lambda t: t.removeprefix(before).removesuffix(after))
