"""What a run gives: figures, and every answer behind them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from k3.eval.figures import Figure, summarize
from k3.eval.protocol import Conditions
from k3.eval.transcript import Record

Report = Callable[[int, int], None]
"""Told how many answers there are, of how many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The figures of a protocol, and every answer behind them."""

    protocol: Conditions
    figures: tuple[Figure, ...]
    records: tuple[Record, ...]

    @property
    def score(self) -> Figure:
        """The figure that stands for the protocol."""
        return next(f for f in self.figures if f.name == self.protocol.score)

    @classmethod
    def of(cls, protocol: Conditions, records: Sequence[Record]) -> "Result":
        """Figures of records that are complete and in order."""
        figures = summarize([(r["index"], r["scores"]) for r in records])
        return cls(protocol=protocol, figures=figures, records=tuple(records))
