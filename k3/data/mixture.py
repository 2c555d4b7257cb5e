"""Sources mixed by weight into rows; row n is a function of the seed and n alone.

A run resumes at any step without a state, and ranks that share a step read what one
rank would have read.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count
from typing import Protocol, TypeAlias, runtime_checkable

from k3.data import order, packing
from k3.data.examples import Example
from k3.data.packing import Row
from k3.data.turns import Turns
from k3.errors import RequestError

SAMPLE = 16
"""Examples whose mean length says how long those of a source are."""
MISFITS = 3
"""Drawn examples too long for the rest of a row, after which the rest is padding."""


@runtime_checkable
class Source(Protocol):
    """Examples by number, any number: the same number gives the same example."""

    @property
    def domain(self) -> str:
        """What its tokens count as when losses are reported."""

    def example(self, index: int) -> Example:
        """The example of a number, of which it is a pure function."""


@runtime_checkable
class RowSource(Protocol):
    """A source that fills rows itself: one pass over what it has, nothing left out."""

    @property
    def domain(self) -> str:
        """What its tokens count as when losses are reported."""

    def row(self, index: int, tokens: int) -> Sequence[Example]:
        """Examples of `tokens` tokens at most, a pure function of both numbers."""


_INDEX_SHIFT = 24
AnySource: TypeAlias = Source | RowSource


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Rows of `tokens` tokens, of which each source fills the share of its weight.

    A `RowSource` gets whole rows, in turns spread evenly over the steps; the other
    sources share the rows that remain and are drawn at random.
    Raises: RequestError.
    """

    sources: Sequence[AnySource]
    weights: Sequence[float]
    tokens: int
    seed: int
    pad_id: int

    def __post_init__(self) -> None:
        known = len(self.weights) == len(self.sources) > 0
        if not known or not all(0 < weight < math.inf for weight in self.weights):
            raise RequestError(
                "a mixture has one positive weight for each source: got "
                f"{list(self.weights)} for {len(self.sources)} sources; give as many"
            )
        if self.tokens < 2:
            raise RequestError(
                f"a row has a token and its target: got tokens={self.tokens}; raise it"
            )

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The names behind the numbers in `Row.domains`."""
        return tuple(dict.fromkeys(source.domain for source in self.sources))

    def rows(self, step: int, batch: int, rank: int = 0, world: int = 1) -> list[Row]:
        """This rank's rows of a step that has `batch` of them on all ranks together.

        Raises: RequestError.
        """
        if step < 0 or not 0 <= rank < world <= batch:
            raise RequestError(
                "a step counts from 0 and gives each rank a row: got step="
                f"{step}, rank={rank}, world={world}, batch={batch}; change them"
            )
        return [
            self.row(n) for n in range(step * batch + rank, (step + 1) * batch, world)
        ]

    def row(self, number: int) -> Row:
        """The row of a number that counts through all steps."""
        group, index = self._turns.of(number)
        if group < len(self._alone):
            source, _ = self._alone[group]
            examples = list(source.row(index, self.tokens))
        else:
            examples = self._drawn(number)
        return packing.pack(examples, self.tokens, self.pad_id, self.domains)

    @cached_property
    def _turns(self) -> Turns:
        """Of each source that fills rows itself, then of the others as one."""
        weights = [weight for _, weight in self._alone]
        shared = [weight for _, weight in self._shared]
        return Turns([*weights, math.fsum(shared)] if shared else weights)

    @cached_property
    def _alone(self) -> list[tuple[RowSource, float]]:
        return [(s, w) for s, w in self._weighted if isinstance(s, RowSource)]

    @cached_property
    def _shared(self) -> list[tuple[Source, float]]:
        return [(s, w) for s, w in self._weighted if not isinstance(s, RowSource)]

    @property
    def _weighted(self) -> list[tuple[AnySource, float]]:
        return list(zip(self.sources, self.weights, strict=True))

    @cached_property
    def _chances(self) -> list[float]:
        """Cumulative chances of being drawn: weight over mean length of an example."""
        rates = [weight / self._mean_tokens(source) for source, weight in self._shared]
        return [total / sum(rates) for total in accumulate(rates)]

    def _mean_tokens(self, source: Source) -> float:
        lengths = [
            len(source.example(order.mix(self.seed, n) >> _INDEX_SHIFT))
            for n in range(SAMPLE)
        ]
        return sum(lengths) / SAMPLE

    def _drawn(self, number: int) -> list[Example]:
        """Examples drawn until several do not fit any more."""
        found: list[Example] = []
        room, misfits = self.tokens, 0
        for draw in count():
            example = self._draw(number, draw)
            if len(example) <= room:
                found.append(example)
                room -= len(example)
                continue
            misfits += 1
            if misfits == MISFITS:
                break
        return found

    def _draw(self, number: int, draw: int) -> Example:
        chance = order.fraction(self.seed, number, draw)
        at = min(bisect_right(self._chances, chance), len(self._shared) - 1)
        index = order.mix(self.seed, number, draw, 1) >> _INDEX_SHIFT
        example = self._shared[at][0].example(index)
        if len(example) > self.tokens:
            raise RequestError(
                f"an example fits into a row: {example.domain} {index} has "
                f"{len(example)} tokens of {self.tokens}; raise tokens"
            )
        return example
