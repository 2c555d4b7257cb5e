"""Partial rollouts: an iteration ends when a share of the samples has finished.

What has not finished keeps its tokens, its environment and the sampler's cache, and
goes first in the next iteration. A prompt is learned from when all its samples are
complete. Nothing here knows which engine samples: it is given a `Sampler`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from k3.config import settings
from k3.train.trajectory import Episode as Episode
from k3.train.trajectory import Picture as Picture
from k3.train.trajectory import Pictured as Pictured
from k3.train.trajectory import Piece as Piece
from k3.train.trajectory import Trajectory as Trajectory


@runtime_checkable
class Sampler(Protocol):
    """What writes tokens. Adapters for an engine and for a server are in recipes."""

    @property
    def version(self) -> int:
        """Which weights sample now; it only grows."""

    def submit(
        self,
        key: str,
        tokens: Sequence[int],
        max_tokens: int,
        pictures: Sequence[Picture] = (),
    ) -> None:
        """Begin to write behind these tokens, or go on where a pause left off.

        `pictures` stand on placeholders among the tokens, in their order.
        """

    def step(self) -> list[Piece]:
        """Let all that was submitted go on for a while."""

    def pause(self, key: str) -> None:
        """Stop a trajectory; what was computed for its tokens is kept."""

    def room(self) -> int:
        """How many more trajectories fit before memory runs out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutOptions:
    """N prompts of K samples are kept active; an iteration ends at `share` of N K.

    A sample whose environment fails begins anew, up to `attempts` times in all.
    """

    prompts: int = 8
    samples: int = 4
    share: float = 0.75
    max_tokens: int = 512
    """Tokens that one trajectory may write in all."""
    attempts: int = 3

    def __post_init__(self) -> None:
        """Refuse what would never end or never begin."""
        settings.check(self, _RULES)

    @property
    def enough(self) -> int:
        """Samples that end an iteration. Matches: spec.rl.rollout_ends."""
        return math.ceil(self.share * self.prompts * self.samples)


_RULES = [
    *((name, *settings.POSITIVE) for name in ("prompts", "samples")),
    *((name, *settings.POSITIVE) for name in ("max_tokens", "attempts")),
    ("share", *settings.SHARE),
]


class Rollouts:
    """The samples under way, over iterations.

    `more()` gives the next prompt: a name and a maker of its episodes; `count` of them
    were taken, and `early` samples of the next iteration have finished already where a
    run goes on in the middle of it. `finished` is
    told of every sample that has ended, before anything else happens.
    """

    def __init__(
        self,
        sampler: Sampler,
        more: Callable[[], tuple[str, Callable[[], Episode]]],
        options: RolloutOptions,
        finished: Callable[[Trajectory], None] = lambda trajectory: None,
    ) -> None:
        self.sampler, self.more, self.options = sampler, more, options
        self.finished = finished
        self.groups: dict[str, list[Trajectory]] = {}
        self._makers: dict[str, Callable[[], Episode]] = {}
        self._running: dict[str, Trajectory] = {}
        self.count = self.early = 0

    @property
    def unfinished(self) -> list[Trajectory]:
        """Trajectories without a reward, those that began first in front."""
        return [t for group in self.groups.values() for t in group if not t.done]

    def iterate(self) -> list[list[Trajectory]]:
        """Run until enough samples have finished; return the groups that are complete.

        A returned group is forgotten here; the others stay, and go first next time.
        """
        self._fill(self.early)
        waiting = iter(self.unfinished)
        finished, self.early = self.early, 0
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
        return [self.forget(name) for name in ready]

    def forget(self, group: str) -> list[Trajectory]:
        """Hand over a group's samples, which are none of the rollouts' any more."""
        del self._makers[group]
        return self.groups.pop(group)

    def close(self) -> None:
        """Free what the environments of unfinished samples hold."""
        for trajectory in self.unfinished:
            trajectory.leave()

    def _fill(self, finished: int) -> None:
        """Take new prompts until N K samples are without a reward."""
        wanted = self.options.prompts * self.options.samples - finished
        while len(self.unfinished) + self.options.samples <= wanted:
            self.take()

    def take(self) -> list[Trajectory]:
        """Take the next prompt; return its samples, which have not begun."""
        name, make = self.more()
        group = f"{self.count}:{name}"
        self.count += 1
        self._makers[group] = make
        self.groups[group] = [
            Trajectory(f"{group}:{i}", group, make())
            for i in range(self.options.samples)
        ]
        return self.groups[group]

    def _start(self, waiting: Iterator[Trajectory]) -> None:
        """Submit as many as there is room for; at least one always runs."""
        while self.sampler.room() > 0 or not self._running:
            trajectory = next(waiting, None)
            if trajectory is None:
                return
            if trajectory.tokens or self._begin(trajectory):
                self._submit(trajectory)

    def _begin(self, trajectory: Trajectory) -> bool:
        """Ask the environment for the prompt; False where it has none to give."""
        while not trajectory.done:
            try:
                trajectory.hear(trajectory.episode.begin())
                return True
            except Exception as fault:
                self._failed(trajectory, fault)
        return False

    def _submit(self, trajectory: Trajectory) -> None:
        left = self.options.max_tokens - trajectory.num_written
        self._running[trajectory.key] = trajectory
        asked = trajectory.key, trajectory.tokens, left
        self.sampler.submit(*asked, trajectory.pictures)

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
        """Ask the environment; go on writing, or take the reward.

        A turn without a token is the last: there was no room for one.
        """
        wrote = trajectory.tokens[trajectory.turn :]
        room = trajectory.num_written < self.options.max_tokens
        try:
            said = trajectory.episode.reply(wrote)
            over = said is None or not wrote or not room
            reward = trajectory.episode.reward() if over else None
        except Exception as fault:
            self._failed(trajectory, fault)
            if self._begin(trajectory):
                self._submit(trajectory)
            return trajectory.done
        if said is not None and not over:
            trajectory.hear(said)
            self._submit(trajectory)
            return False
        self._end(trajectory, reward)
        return True

    def _failed(self, trajectory: Trajectory, fault: Exception) -> None:
        """Begin anew, or end it without a reward that means anything."""
        trajectory.failures += 1
        trajectory.leave()
        trajectory.restart(self._makers[trajectory.group]())
        if trajectory.failures >= self.options.attempts:
            trajectory.lost = f"{type(fault).__name__}: {fault}"
            self._end(trajectory, 0.0)

    def _end(self, trajectory: Trajectory, reward: float | None) -> None:
        trajectory.reward = reward
        self.finished(trajectory)
