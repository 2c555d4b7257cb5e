"""One sample of a rollout: who wrote each of its tokens, and in which environment."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """What a sampler wrote for one trajectory since it was last asked.

    `done` says that the turn is over: an end token or the limit was reached. `routes`
    are experts that tokens of the trajectory took, from a place on: [n layers k].
    """

    key: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    done: bool
    routes: tuple[tuple[int, Tensor], ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """Patches of one picture, its grid (t, h, w), and where its placeholders begin."""

    start: int
    pixels: Float[Tensor, "N 3 P P"]
    grid: tuple[int, int, int]


@runtime_checkable
class Episode(Protocol):
    """One sample of one prompt in its environment; it keeps what tools have done."""

    def begin(self) -> list[int]:
        """The prompt's tokens."""

    def reply(self, written: Sequence[int]) -> list[int] | None:
        """What the environment says to a finished turn; None at the end."""

    def reward(self) -> float:
        """The episode's reward, from -1 to 1, once it has ended."""


@runtime_checkable
class Pictured(Protocol):
    """An episode that shows pictures."""

    @property
    def pictures(self) -> Sequence[Picture]:
        """All that stand in its tokens so far, in order."""


@dataclass(slots=True)
class Trajectory:
    """Tokens of one sample, and who wrote each.

    For every token of `tokens`: `written` is True where the policy sampled it, then
    `logprobs` and `versions` say how likely it was and by which weights; else 0.
    `routes` holds the experts [layers k] that a token first took, by its place, where
    the sampler tells them.
    """

    key: str
    group: str
    episode: Episode
    tokens: list[int] = field(default_factory=list)
    written: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    routes: dict[int, Tensor] = field(default_factory=dict)
    turn: int = 0
    """Where the turn that is being written began."""
    iterations: int = 0
    reward: float | None = None
    failures: int = 0
    """How often its environment failed, and it began anew."""
    lost: str = ""
    """What the environment last said, where it failed too often to be learned from."""

    @property
    def done(self) -> bool:
        """Whether its reward is known."""
        return self.reward is not None

    @property
    def pictures(self) -> Sequence[Picture]:
        """What its tokens show."""
        return self.episode.pictures if isinstance(self.episode, Pictured) else ()

    @property
    def num_written(self) -> int:
        """Tokens that the policy sampled."""
        return sum(self.written)

    def hear(self, tokens: Sequence[int]) -> None:
        """Append what the environment says."""
        self._append(tokens, False, [0.0] * len(tokens), 0)
        self.turn = len(self.tokens)

    def leave(self) -> None:
        """Free what its environment holds, if that can be told and can be done."""
        close = getattr(self.episode, "close", None)
        if close is not None:
            with suppress(Exception):
                close()

    def restart(self, episode: Episode) -> None:
        """Begin anew in another environment."""
        self.episode, self.turn = episode, 0
        for held in (self.tokens, self.written, self.logprobs, self.versions):
            held.clear()
        self.routes.clear()

    def write(self, piece: Piece, version: int) -> None:
        """Append what the policy wrote."""
        self._append(piece.tokens, True, piece.logprobs, version)
        for start, rows in piece.routes:
            for place, row in enumerate(rows, start):
                self.routes.setdefault(place, row)

    def experts(self) -> Int[Tensor, "T layers k"] | None:
        """The routes of all tokens, -1 where none are known; None where none is."""
        if not self.routes:
            return None
        like = next(iter(self.routes.values()))
        found = like.new_full((len(self.tokens), *like.shape), -1)
        for place, row in self.routes.items():
            found[place] = row
        return found

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
