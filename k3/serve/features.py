"""What the target's passes leave for a draft that reads more than tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from k3.model.cache import MLACache
from k3.serve.draft import Chance, Draft, Proposal

Layers = tuple[int, ...]


@dataclass(slots=True)
class Trace:
    """Features of one sequence that the draft has not run, and the draft's own rows.

    `end` is the position after the last feature. A gap, as a restored prefix leaves,
    makes the draft begin anew behind it. The draft's rows are sequence `row` of
    `cache`, which those that were drafted for together share.
    """

    end: int = 0
    cache: MLACache | None = None
    row: int = 0
    parts: list[Tensor] = field(default_factory=list)

    def see(self, start: int, features: Float[Tensor, "T F"]) -> None:
        """Take the features of tokens from position `start`."""
        if start != self.end:
            self.parts, self.cache, self.row = [], None, 0
        self.parts.append(features)
        self.end = start + len(features)

    def take(self) -> Float[Tensor, "T F"] | None:
        """Hand over what has not been run yet, oldest first."""
        parts, self.parts = self.parts, []
        return torch.cat(parts) if parts else None

    def rows(self) -> MLACache | None:
        """The draft's rows of this sequence alone, not copied."""
        if self.cache is None:
            return None
        own = self.cache.rows[self.row : self.row + 1]
        return MLACache(own, self.cache.lens[self.row : self.row + 1])

    def fork(self) -> "Trace":
        """Return an independent copy."""
        cache = None if self.cache is None else self.cache.select([self.row])
        return Trace(self.end, cache, 0, [*self.parts])


def together(traces: Sequence[Trace], empty: MLACache) -> MLACache:
    """One cache with the draft's rows of each trace in order; `empty` has none.

    It is the one they share already, if they share one; else what they have is copied.
    """
    first = traces[0].cache
    same = all(t.cache is first and t.row == row for row, t in enumerate(traces))
    if first is not None and same and len(first.lens) == len(traces):
        return first
    made = MLACache.join([trace.rows() or empty for trace in traces])
    for row, trace in enumerate(traces):
        trace.cache, trace.row = made, row
    return made


@runtime_checkable
class FeatureDraft(Draft, Protocol):
    """A draft that reads running sums of the target's layers `reads`, from 0."""

    reads: Layers

    def propose_from(
        self,
        traces: Sequence[Trace],
        contexts: list[list[int]],
        k: int,
        chances: Sequence[Chance],
        /,
    ) -> list[Proposal]:
        """At most k tokens behind each context."""


def layers(draft: Draft | None) -> Layers:
    """The layers that a draft reads; none for one that reads tokens alone."""
    return draft.reads if isinstance(draft, FeatureDraft) else ()
