"""Partial rollouts: an iteration ends when a share of the samples has finished.

What has not finished keeps its tokens, its environment and the sampler's cache, and
goes first in the next iteration. A prompt is learned from when all its samples are
complete. Nothing here knows which engine samples: it is given a `Sampler`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from k3.errors import RequestError


@dataclass(frozen=True, slots=True)
class Piece:
    """What a sampler wrote for one trajectory since it was last asked.

    `done` says that the turn is over: an end token or the limit was reached.
    """

    key: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    done: bool


@runtime_checkable
class Sampler(Protocol):
    """What writes tokens. Adapters for an engine and for a server are in recipes."""

    @property
    def version(self) -> int:
        """Which weights sample now; it only grows."""

    def submit(self, key: str, tokens: Sequence[int], max_tokens: int) -> None:
        """Begin to write behind these tokens, or go on where a pause left off."""

    def step(self) -> list[Piece]:
        """Let all that was submitted go on for a while."""

    def pause(self, key: str) -> None:
        """Stop a trajectory; what was computed for its tokens is kept."""

    def room(self) -> int:
        """How many more trajectories fit before memory runs out."""


@runtime_checkable
class Episode(Protocol):
    """One sample of one prompt in its environment; it keeps what tools have done."""

    def begin(self) -> list[int]:
        """The prompt's tokens."""

    def reply(self, written: Sequence[int]) -> list[int] | None:
        """What the environment says to a finished turn; None at the end."""

    def reward(self) -> float:
        """The episode's reward, from -1 to 1, once it has ended."""


@dataclass(slots=True)
class Trajectory:
    """Tokens of one sample, and who wrote each.

    For every token of `tokens`: `written` is True where the policy sampled it, then
    `logprobs` and `versions` say how likely it was and by which weights; else 0.
    """

    key: str
    group: str
    episode: Episode
    tokens: list[int] = field(default_factory=list)
    written: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    turn: int = 0
    """Where the turn that is being written began."""
    iterations: int = 0
    reward: float | None = None

    @property
    def done(self) -> bool:
        """Whether its reward is known."""
        return self.reward is not None

    @property
    def num_written(self) -> int:
        """Tokens that the policy sampled."""
        return sum(self.written)

    def hear(self, tokens: Sequence[int]) -> None:
        """Append what the environment says."""
        self._append(tokens, False, [0.0] * len(tokens), 0)
        self.turn = len(self.tokens)

    def write(self, piece: Piece, version: int) -> None:
        """Append what the policy wrote."""
        self._append(piece.tokens, True, piece.logprobs, version)

    def staleness(self, version: int) -> float:
        """Mean number of weight versions between sampling and now."""
        ages = [
            version - v
            for v, own in zip(self.versions, self.written, strict=True)
            if own
        ]
        return sum(ages) / max(1, len(ages))

    def _append(
        self, tokens: Sequence[int], own: bool, logprobs: Sequence[float], version: int
    ) -> None:
        self.tokens += tokens
        self.written += [own] * len(tokens)
        self.logprobs += logprobs
        self.versions += [version] * len(tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutOptions:
    """N prompts of K samples are kept active; an iteration ends at `share` of N K."""

    prompts: int = 8
    samples: int = 4
    share: float = 0.75
    max_tokens: int = 512
    """Tokens that one trajectory may write in all."""

    def __post_init__(self) -> None:
        """Refuse what would never end or never begin."""
        wrong = [
            f"{name} must be at least 1: got {getattr(self, name)}"
            for name in ("prompts", "samples", "max_tokens")
            if getattr(self, name) < 1
        ]
        if not 0 < self.share <= 1:
            wrong.append(f"share must be above 0 and at most 1: got {self.share}")
        if wrong:
            raise RequestError("; ".join(wrong))

    @property
    def enough(self) -> int:
        """Samples that end an iteration. Matches: spec.rl.rollout_ends."""
        return math.ceil(self.share * self.prompts * self.samples)


class Rollouts:
    """The samples under way, over iterations.

    `more()` gives the next prompt: a name and a maker of its episodes.
    """

    def __init__(
        self,
        sampler: Sampler,
        more: Callable[[], tuple[str, Callable[[], Episode]]],
        options: RolloutOptions,
    ) -> None:
        self.sampler, self.more, self.options = sampler, more, options
        self.groups: dict[str, list[Trajectory]] = {}
        self._running: dict[str, Trajectory] = {}
        self._count = 0

    @property
    def unfinished(self) -> list[Trajectory]:
        """Trajectories without a reward, those that began first in front."""
        return [t for group in self.groups.values() for t in group if not t.done]

    def iterate(self) -> list[list[Trajectory]]:
        """Run until enough samples have finished; return the groups that are complete.

        A returned group is forgotten here; the others stay, and go first next time.
        """
        self._fill()
        waiting = iter(self.unfinished)
        finished = 0
        while finished < self.options.enough:
            self._start(waiting)
            if not self._running:
                break
            finished += self._step()
        for key in list(self._running):
            self.sampler.pause(key)
            del self._running[key]
        for trajectory in self.unfinished:
            trajectory.iterations += 1
        ready = [name for name, g in self.groups.items() if all(t.done for t in g)]
        return [self.groups.pop(name) for name in ready]

    def _fill(self) -> None:
        """Take new prompts until N K samples are without a reward."""
        wanted = self.options.prompts * self.options.samples
        while len(self.unfinished) + self.options.samples <= wanted:
            name, make = self.more()
            group = f"{self._count}:{name}"
            self._count += 1
            self.groups[group] = [
                Trajectory(f"{group}:{i}", group, make())
                for i in range(self.options.samples)
            ]

    def _start(self, waiting: Iterator[Trajectory]) -> None:
        """Submit as many as there is room for; at least one always runs."""
        while self.sampler.room() > 0 or not self._running:
            trajectory = next(waiting, None)
            if trajectory is None:
                return
            if not trajectory.tokens:
                trajectory.hear(trajectory.episode.begin())
            self._submit(trajectory)

    def _submit(self, trajectory: Trajectory) -> None:
        left = self.options.max_tokens - trajectory.num_written
        self._running[trajectory.key] = trajectory
        self.sampler.submit(trajectory.key, trajectory.tokens, left)

    def _step(self) -> int:
        """Take what the sampler wrote; return how many trajectories ended."""
        ended, version = 0, self.sampler.version
        for piece in self.sampler.step():
            trajectory = self._running.get(piece.key)
            if trajectory is None:
                continue
            trajectory.write(piece, version)
            if piece.done:
                del self._running[piece.key]
                ended += self._turn_over(trajectory)
        return ended

    def _turn_over(self, trajectory: Trajectory) -> bool:
        """Ask the environment; go on writing, or take the reward."""
        said = trajectory.episode.reply(trajectory.tokens[trajectory.turn :])
        if said is not None and trajectory.num_written < self.options.max_tokens:
            trajectory.hear(said)
            self._submit(trajectory)
            return False
        trajectory.reward = trajectory.episode.reward()
        return True
