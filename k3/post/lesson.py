"""What a finished sample teaches: its tokens, who wrote them, how good it was."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from k3.train import rl
from k3.train.trajectory import Trajectory


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """A sample to learn from: its tokens, which it wrote, and how good it was.

    `then` are log-probabilities when they were sampled, `versions` the weights that
    sampled them; both mean nothing where `written` is False. `routes` are experts that
    its tokens took then, -1 where they are not known. `frozen` are log-probabilities
    of its n written tokens under a policy that stays as it is, where there is one.
    """

    tokens: Int[Tensor, " T"]
    written: Bool[Tensor, " T"]
    then: Float[Tensor, " T"]
    versions: Int[Tensor, " T"]
    advantage: float
    routes: Int[Tensor, "T layers k"] | None = None
    frozen: Float[Tensor, " n"] | None = None

    def __len__(self) -> int:
        return len(self.tokens)


def lessons(
    group: Sequence[Trajectory], rewards: Sequence[float], *, every: bool = False
) -> list[Lesson]:
    """What a group teaches: nothing where all rewards are equal.

    Samples that an environment has lost are left out, as if they had not been drawn.
    With `every` those that teach nothing are there too.
    """
    kept = [
        (one, reward)
        for one, reward in zip(group, rewards, strict=True)
        if not one.lost
    ]
    found = rl.advantages([reward for _, reward in kept])
    return [
        Lesson(
            tokens=torch.tensor(t.tokens),
            written=torch.tensor(t.written),
            then=torch.tensor(t.logprobs),
            versions=torch.tensor(t.versions),
            advantage=advantage,
            routes=t.experts(),
        )
        for (t, _), advantage in zip(kept, found, strict=True)
        if (advantage or every) and t.num_written
    ]


def packed(lessons: Iterable[Lesson], tokens: int) -> Iterator[list[Lesson]]:
    """Lessons in passes of at most so many tokens, or of one longer lesson."""
    pack: list[Lesson] = []
    for lesson in lessons:
        if pack and sum(map(len, pack)) + len(lesson) > tokens:
            yield pack
            pack = []
        pack.append(lesson)
    if pack:
        yield pack
