"""A tournament of the samples of a group: judged pairs become rewards in [-1, 1]."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from k3.config import settings
from k3.errors import RequestError
from k3.post.judge import Judge
from k3.post.rubric import Rubric
from k3.train import rl

Pair = tuple[int, int]
"""Places of the first and the second candidate of one comparison."""

POINTS = {"first": 1.0, "tie": 0.5, "second": 0.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class TournamentOptions:
    """Who meets whom, and when a candidate is too long.

    Up to `most_all` candidates everyone meets everyone, more play `rounds` (0 is as
    many as a knockout needs, and one) in Swiss pairs. A first candidate of more than
    `factor` times the baseline loses; 0 leaves lengths alone.
    """

    most_all: int = 8
    rounds: int = 0
    factor: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        settings.check(self, _RULES)


_RULES = [(name, *settings.COUNT) for name in ("most_all", "rounds", "factor")]


@dataclass(slots=True)
class Table:
    """Points and comparisons of each candidate, and who has met whom."""

    points: list[float]
    games: list[int]
    met: set[Pair] = field(default_factory=set)

    @classmethod
    def of(cls, count: int) -> "Table":
        """A table before any comparison."""
        return cls([0.0] * count, [0] * count)

    def take(self, pair: Pair, winner: str) -> None:
        """Write a comparison down."""
        first, second = pair
        self.points[first] += POINTS[winner]
        self.points[second] += 1 - POINTS[winner]
        self.games[first] += 1
        self.games[second] += 1
        self.met.add((min(pair), max(pair)))

    def rewards(self) -> list[float]:
        """2 points / comparisons - 1; 0 for who met nobody."""
        return [
            2 * p / g - 1 if g else 0.0
            for p, g in zip(self.points, self.games, strict=True)
        ]


class Tournament:
    """Every pair is judged in both orders, so a judge's liking for a place cancels.

    Nothing is inferred from A over B and B over C: a reward is a share of comparisons
    that were made.
    """

    def __init__(
        self, judge: Judge, rubric: Rubric, options: TournamentOptions | None = None
    ) -> None:
        self.judge, self.rubric = judge, rubric
        self.options = options or TournamentOptions()

    def rewards(
        self,
        task: str,
        candidates: Sequence[str],
        lengths: Sequence[int] | None = None,
        baseline: float = 0.0,
    ) -> list[float]:
        """A reward for each candidate of a group, from -1 to 1.

        `lengths` in tokens and their `baseline` are needed where a factor holds them.
        Raises: RequestError.
        """
        self._check(len(candidates), lengths, baseline)
        table = Table.of(len(candidates))
        for pairs in self._rounds(table):
            for pair in pairs:
                for order in (pair, pair[::-1]):
                    winner = self._winner(task, candidates, order)
                    table.take(order, self._held(winner, order[0], lengths, baseline))
        return table.rewards()

    def _winner(self, task: str, candidates: Sequence[str], pair: Pair) -> str:
        first, second = (candidates[place] for place in pair)
        return self.judge.compare(task, first, second, self.rubric).winner

    def _held(
        self, winner: str, first: int, lengths: Sequence[int] | None, baseline: float
    ) -> str:
        if not self.options.factor or lengths is None:
            return winner
        return rl.verbose(winner, lengths[first], baseline, self.options.factor)

    def _rounds(self, table: Table) -> Iterator[list[Pair]]:
        """The pairs of each round; a Swiss one depends on the points before it."""
        count = len(table.points)
        if count <= self.options.most_all:
            yield [(a, b) for a in range(count) for b in range(a + 1, count)]
            return
        rounds = self.options.rounds or math.ceil(math.log2(count)) + 1
        rng = random.Random(self.options.seed)
        for _ in range(rounds):
            yield swiss(table, rng)

    def _check(
        self, count: int, lengths: Sequence[int] | None, baseline: float
    ) -> None:
        if lengths is not None and len(lengths) != count:
            raise RequestError(
                f"a tournament needs one length a candidate: got {len(lengths)} for "
                f"{count}"
            )
        if self.options.factor and (lengths is None or not baseline > 0):
            raise RequestError(
                "a factor on lengths needs lengths and a baseline above 0: got "
                f"{'no lengths' if lengths is None else baseline}"
            )


def swiss(table: Table, rng: random.Random) -> list[Pair]:
    """Pairs of candidates of near points who have not met, as far as there are any.

    With an odd number the one of most comparisons, then fewest points, sits out.
    """
    left = list(range(len(table.points)))
    rng.shuffle(left)
    left.sort(key=lambda i: -_share(table, i))
    if len(left) % 2:
        left.remove(max(left, key=lambda i: (table.games[i], -table.points[i])))
    pairs = []
    while left:
        one = left.pop(0)
        new = (i for i in left if (min(one, i), max(one, i)) not in table.met)
        other = next(new, left[0])
        left.remove(other)
        pairs.append((one, other))
    return pairs


def _share(table: Table, place: int) -> float:
    return table.points[place] / max(1, table.games[place])
