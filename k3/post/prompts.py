"""What a run plays: instances of its tasks in turn, each an episode of its number."""

from collections.abc import Callable
from typing import Protocol

from k3.data.tasks.lot import Split
from k3.data.tokenizer import Tokenizer
from k3.envs import registry
from k3.post import episode
from k3.post.episode import EnvironmentEpisode
from k3.post.recipes import Recipe
from k3.train.trajectory import Episode

LOTS = 10**7
"""Instances that a seed has for itself."""


class Numbered(Protocol):
    """Prompts one after the other; `number` says which one comes next."""

    number: int

    def __call__(self) -> tuple[str, Callable[[], Episode]]:
        """A name, and what makes an episode of it."""


class Prompts:
    """Called for the next prompt, as `Rollouts` does; `number` says which that is.

    Instance i of the tasks t is i // len(t) of task i % len(t).
    """

    def __init__(
        self, recipe: Recipe, tokenizer: Tokenizer, split: Split = "train"
    ) -> None:
        self.recipe, self.tokenizer, self.split = recipe, tokenizer, split
        self.makers = {name: registry.named(name) for name in recipe.tasks}
        self.number = 0

    def __call__(self) -> tuple[str, Callable[[], EnvironmentEpisode]]:
        """A name, TASK:INDEX, and what makes an episode of it."""
        index, place = divmod(self.number, len(self.recipe.tasks))
        self.number += 1
        task = self.recipe.tasks[place]
        if self.split == "train":
            index += self.recipe.seed * LOTS

        def make() -> EnvironmentEpisode:
            environment = self.makers[task](self.split, index)
            shape = episode.credited if self.recipe.shaped else episode.scored
            effort = self.recipe.told
            return EnvironmentEpisode(
                environment, self.tokenizer, effort=effort, shape=shape
            )

        return f"{task}:{index}", make


def task_of(group: str) -> str:
    """The task of a group that `Rollouts` has named NUMBER:TASK:INDEX."""
    return group.split(":", 1)[1].rpartition(":")[0]
