"""A frozen policy beside the one that learns: what it says of each sample."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from k3.model import Model
from k3.post import lesson, policy, rl
from k3.post.lesson import Lesson
from k3.post.recipes import Recipe
from k3.post.rl import Teach
from k3.train import reference
from k3.train.trajectory import Trajectory


class Anchor:
    """Makes lessons as RL does, each with the word of a frozen policy.

    Passes of that policy have about `tokens` tokens.
    """

    def __init__(self, model: Model, tokens: int) -> None:
        self.model, self.tokens = model, tokens

    def __call__(
        self, rewarded: Sequence[tuple[list[Trajectory], Sequence[float]]]
    ) -> list[Lesson]:
        """The lessons of groups and their rewards."""
        made = rl.reinforced(rewarded)
        packs = lesson.packed(made, self.tokens)
        return [one for pack in packs for one in self._told(pack)]

    @torch.no_grad()
    def _told(self, pack: Sequence[Lesson]) -> list[Lesson]:
        said = policy.logprobs(self.model, pack)
        parts = said.split([int(one.written.sum()) for one in pack])
        return [
            dataclasses.replace(one, frozen=part)
            for one, part in zip(pack, parts, strict=True)
        ]


@contextmanager
def opened(recipe: Recipe, folder: Path) -> Iterator[Teach]:
    """How a recipe makes lessons: with the folder's own weights where it has an anchor.

    They are streamed from the files, two layers at a time in memory.
    """
    if not recipe.anchor:
        yield rl.reinforced
        return
    with reference.streamed(folder, dtype=torch.float32) as frozen:
        yield Anchor(frozen, recipe.pass_tokens)
