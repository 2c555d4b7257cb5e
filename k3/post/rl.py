"""`k3 rl`: sample, reward, learn, hand the new weights on; nothing finished is lost."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from k3.errors import RequestError
from k3.post import journal, policy
from k3.post.journal import Journal
from k3.post.policy import Lesson, Policy
from k3.post.prompts import Numbered
from k3.post.recipes import Recipe
from k3.post.rewards import Rewards
from k3.train import interrupt
from k3.train.rollout import Rollouts, Sampler
from k3.train.trajectory import Trajectory
from k3.train.writer import Writer

Record = dict[str, Any]
Group = list[Trajectory]
Rewarded = tuple[Group, Sequence[float]]
Teach = Callable[[Sequence[Rewarded]], Sequence[Any]]
"""The lessons of groups and their rewards."""


def reinforced(rewarded: Sequence[Rewarded]) -> Sequence[Any]:
    """What groups teach by the rewards of their samples."""
    return [x for group, found in rewarded for x in policy.lessons(group, found)]


class Updated(Sampler, Protocol):
    """A sampler that is told of new weights."""

    def update(self, version: int) -> None:
        """From now on the model's new weights sample, and are called this."""


@dataclass(slots=True)
class At:
    """Where a run is: updates made, seconds spent, tokens written and learned from."""

    iteration: int = 0
    seconds: float = 0.0
    sampled_tokens: int = 0
    learned_tokens: int = 0
    torn: bool = False
    """Whether an update has moved some values and not yet all."""

    def facts(self) -> dict[str, Any]:
        """What a snapshot tells; `step` names its file."""
        names = ("iteration", "seconds", "sampled_tokens", "learned_tokens")
        return {name: getattr(self, name) for name in names} | {"step": self.iteration}


@dataclass(slots=True)
class Loop:
    """The iterations of one run.

    `again` holds updates that were made after the snapshot that the run goes on from:
    they are made first, from the same samples and rewards, so that versions mean what
    they say and no judge is asked twice.
    """

    recipe: Recipe
    policy: Policy
    sampler: Updated
    rollouts: Rollouts
    rewards: Rewards
    journal: Journal
    teach: Teach = reinforced
    at: At = field(default_factory=At)
    again: list[list[Rewarded]] = field(default_factory=list)

    @staticmethod
    def of(
        recipe: Recipe,
        policy: Policy,
        sampler: Updated,
        prompts: Numbered,
        parts: tuple[Rewards, Journal],
    ) -> "Loop":
        """A run at its start."""
        rewards, log = parts

        def finished(one: Trajectory) -> None:
            log.append(journal.finished(one))

        rollouts = Rollouts(sampler, prompts, recipe.rollouts, finished)
        return Loop(recipe, policy, sampler, rollouts, rewards, log)

    def step(self, pool: ThreadPoolExecutor, report: Callable[[Record], None]) -> None:
        """Sample until an iteration ends, learn from the groups it completed, tell."""
        began, replayed = time.monotonic(), bool(self.again)
        rewarded = self.again.pop(0) if replayed else []
        groups = [g for g, _ in rewarded] if replayed else self.rollouts.iterate()
        sampled = time.monotonic()
        self._check(groups)
        if not replayed:
            rewarded = [(g, self.rewards.of(g, self.at.iteration)) for g in groups]
            self.journal.append(journal.learned(self.at.iteration, rewarded))
        with interrupt.held():
            record = self._learn(rewarded, pool)
            ended = time.monotonic()
            self.at.seconds += ended - began
            record["seconds"] = self.at.seconds
            record["sample_seconds"] = sampled - began
            record["update_seconds"] = ended - sampled
            # What the snapshot holds has its line, also where Ctrl-C has waited.
            report(record | ({"again": True} if replayed else {}))

    def _learn(self, rewarded: Sequence[Rewarded], pool: ThreadPoolExecutor) -> Record:
        """Update the weights, and hand them to the sampler."""
        at, recipe = self.at, self.recipe
        lessons = self.teach(rewarded)
        at.torn = True
        rate = recipe.rate(at.iteration)
        version = self.sampler.version
        record = self.policy.update(lessons, version, pool, rate)
        spare = [] if lessons else _some(rewarded)
        record |= self.policy.look(spare, version) if spare else {}
        at.iteration += 1
        at.learned_tokens += record["learned_tokens"]
        at.sampled_tokens += sum(one.num_written for g, _ in rewarded for one in g)
        self.sampler.update(at.iteration)
        at.torn = False
        told = {"step": at.iteration, "steps": recipe.iterations}
        return told | {"learning_rate": rate} | summary(rewarded) | record

    def _check(self, groups: Sequence[Group]) -> None:
        lost = [one.lost for group in groups for one in group if one.lost]
        if groups and len(lost) == sum(map(len, groups)):
            raise RequestError(
                "an iteration needs an environment that answers: got failures alone, "
                f"the last {lost[-1]}; mend it and resume"
            )


def _some(rewarded: Sequence[Rewarded]) -> list[Lesson]:
    """The samples of one group, for parity where no group teaches anything."""
    return next((policy.lessons(g, found, every=True) for g, found in rewarded), [])


def summary(rewarded: Sequence[Rewarded]) -> Record:
    """What the samples of an iteration came to."""
    samples = [one for group, _ in rewarded for one in group]
    rewards = [reward for _, found in rewarded for reward in found]
    count = max(1, len(samples))
    return {
        "samples": len(samples),
        "reward": sum(rewards) / count,
        "success": sum(one.reward == 1.0 for one in samples) / count,
        "tokens": sum(one.num_written for one in samples) / count,
        "iterations": sum(one.iterations for one in samples) / count,
        "failures": sum(one.failures for one in samples),
    }


def steps(
    loop: Loop,
    pool: ThreadPoolExecutor,
    writer: Writer,
    facts: dict[str, Any],
    report: Callable[[Record], None],
) -> None:
    """Iterate to the recipe's last one, with the snapshots that are due on the way."""
    saved = time.monotonic()
    try:
        while loop.at.iteration < loop.recipe.iterations:
            loop.step(pool, report)
            if time.monotonic() - saved > 60 * loop.recipe.checkpoint_minutes:
                save(loop, writer, facts)
                saved = time.monotonic()
    finally:
        with interrupt.held():
            if not loop.at.torn:
                save(loop, writer, facts)
                writer.wait()


def save(loop: Loop, writer: Writer, facts: dict[str, Any]) -> None:
    """Begin to write a snapshot: weights, moments, biases, and where the run is."""
    held = loop.policy
    writer.begin(tensors(held), facts | loop.at.facts())


def tensors(held: Policy) -> dict[str, Tensor]:
    """Weights, moments and biases by name."""
    return held.masters.state() | held.balance.state()
