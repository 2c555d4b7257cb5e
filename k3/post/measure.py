"""Held-out success: how often an engine's model solves instances it never learns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.post.prompts import Prompts, task_of
from k3.post.recipes import Recipe
from k3.train.rollout import RolloutOptions, Rollouts, Sampler
from k3.train.trajectory import Trajectory

Z95 = 1.959963984540054


@dataclass(frozen=True, kw_only=True, slots=True)
class Success:
    """Share of instances that scored 1, its interval, and tokens written a sample."""

    count: int
    rate: float
    low: float
    high: float
    tokens: float

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return (
            f"{self.rate:.1%} of {self.count} ({self.low:.1%} to {self.high:.1%}), "
            f"{self.tokens:.0f} tokens each"
        )


def heldout(
    sampler: Sampler, recipe: Recipe, tokenizer: Tokenizer, count: int
) -> dict[str, Success]:
    """One sample of each of `count` held-out instances of every task, by its name.

    Samples that an environment lost are left out; a task may have none.
    """
    prompts = Prompts(recipe, tokenizer, "heldout")
    return _by_task(_played(sampler, prompts, recipe, count), recipe.tasks)


def baseline(
    sampler: Sampler, recipe: Recipe, tokenizer: Tokenizer, count: int
) -> dict[str, float]:
    """Mean tokens a sample of each task takes now, on instances that are trained on.

    Raises: RequestError for a task in which nothing is written, or everything lost.
    """
    prompts = Prompts(recipe, tokenizer)
    found = _by_task(_played(sampler, prompts, recipe, count), recipe.tasks)
    lengths = {task: success.tokens for task, success in found.items()}
    for task, tokens in lengths.items():
        if not found[task].count:
            raise RequestError(
                f"a budget needs an environment that answers: got failures alone in "
                f"{count} samples of {task}; mend it and begin again"
            )
        if not tokens:
            raise RequestError(
                f"a budget needs a model that writes: got no token in {count} samples "
                f"of {task}; begin with a model that answers"
            )
    return lengths


def wilson(right: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of `count`. Source: Wilson 1927."""
    if not count:
        return 0.0, 1.0
    z, n = Z95, count
    share = right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    half /= 1 + z * z / n
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return low if right else 0.0, high if right < n else 1.0


def _played(
    sampler: Sampler, prompts: Prompts, recipe: Recipe, count: int
) -> list[Trajectory]:
    """One sample each of `count` instances of every task."""
    options = RolloutOptions(
        prompts=count * len(recipe.tasks),
        samples=1,
        share=1.0,
        max_tokens=recipe.max_tokens,
    )
    return [one for (one,) in Rollouts(sampler, prompts, options).iterate()]


def _by_task(played: Sequence[Trajectory], names: Sequence[str]) -> dict[str, Success]:
    tasks: dict[str, list[Trajectory]] = {name: [] for name in names}
    for one in played:
        if not one.lost:
            tasks.setdefault(task_of(one.group), []).append(one)
    return {task: success(found) for task, found in tasks.items()}


def success(played: Sequence[Trajectory]) -> Success:
    """The share of samples whose reward is 1."""
    count, right = len(played), sum(one.reward == 1.0 for one in played)
    low, high = wilson(right, count)
    n, written = max(1, count), sum(one.num_written for one in played)
    return Success(count=count, rate=right / n, low=low, high=high, tokens=written / n)
