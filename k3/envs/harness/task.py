"""A task apart from how an agent is asked to do it: a goal, abilities, a score."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Content = str | list[dict[str, Any]]
"""The content of a message: a text, or parts of it, some of which are pictures."""

Asked = tuple[str, Mapping[str, Any]]
"""An ability by its name, and what it is given."""

Steps = Generator[Asked, Content, str]
"""What a scripted agent asks for, is told, and submits at its end."""

SUBMIT = "submit"
"""The ability to end with an answer; every task has it and none lists it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ability:
    """Something that can be done, whatever a harness calls it.

    `properties` are JSON schemas by name, in the order in which they are written on a
    line; `act` takes them as keywords. What an agent does wrong is a sentence in what
    `act` returns, never an exception.
    """

    words: str
    properties: Mapping[str, Mapping[str, Any]]
    act: Callable[..., Content]
    optional: frozenset[str] = frozenset()


@runtime_checkable
class Task(Protocol):
    """One instance, with a state of its own."""

    @property
    def goal(self) -> Content:
        """What is asked for, and the form of the answer."""

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """What can be done, by name; `submit` comes to these."""

    def submit(self, answer: str) -> None:
        """Take an answer; it is the last."""

    def solve(self) -> Steps:
        """The steps of a perfect agent, which knows no more than the goal says."""

    def score(self) -> float:
        """From 0 to 1; the same each time it is asked after the end."""

    def close(self) -> None:
        """Free what it holds; twice is as good as once."""


def text(content: Content) -> str:
    """The words of a content, without its pictures."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def worded(content: Content, change: Callable[[str], str]) -> Content:
    """A content with its texts changed; pictures stay."""
    if isinstance(content, str):
        return change(content)
    return [
        {**part, "text": change(part["text"])} if part["type"] == "text" else part
        for part in content
    ]
