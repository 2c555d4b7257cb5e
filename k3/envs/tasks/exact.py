"""A task with one right answer, known from the start and never shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from k3.envs.harness.task import Ability, Content, Steps


def nothing() -> None:
    """Nothing is held."""


@dataclass(kw_only=True, slots=True)
class Exact:
    """Implements `Task`: 1 for an answer that is right as it stands, else 0.

    `accepts` judges the answer without the blanks around it; `script` makes the steps
    of a perfect agent; `free` is called at the end.
    """

    goal: Content
    abilities: Mapping[str, Ability]
    accepts: Callable[[str], bool]
    script: Callable[[], Steps]
    free: Callable[[], None] = nothing
    answer: str | None = None

    def submit(self, answer: str) -> None:
        """Take an answer; it is the last."""
        self.answer = answer.strip() if self.answer is None else self.answer

    def solve(self) -> Steps:
        """The steps of a perfect agent."""
        return self.script()

    def score(self) -> float:
        """1 for the right answer, else 0."""
        return float(self.answer is not None and self.accepts(self.answer))

    def close(self) -> None:
        """Free what it holds."""
        self.free()
