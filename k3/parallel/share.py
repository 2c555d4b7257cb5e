"""A packed row split over ranks: which tokens and pieces of documents each has."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from k3.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Share:
    """Tokens start .. stop of a row.

    `lens` are the pieces of documents here, `before` the tokens that the first one's
    document has on earlier ranks.
    """

    start: int
    stop: int
    lens: tuple[int, ...]
    before: int

    @property
    def through(self) -> bool:
        """Whether all of it lies inside a document that began earlier."""
        return self.before > 0 and len(self.lens) == 1


def bounds(tokens: int, ranks: int) -> tuple[int, ...]:
    """Return where each rank's tokens start, and the end; parts differ by one at most.

    Raises: ShapeError where a rank would have none.
    """
    if tokens < ranks:
        raise ShapeError(
            f"context must be at most the tokens of a row: got {ranks} ranks for "
            f"{tokens} tokens; lower it or pack longer rows"
        )
    return tuple(tokens * r // ranks for r in range(ranks + 1))


@lru_cache(maxsize=256)
def shares(lens: tuple[int, ...], ranks: int) -> tuple[Share, ...]:
    """Return each rank's part of a row of documents of these lengths."""
    edges = bounds(sum(lens), ranks)
    out = []
    for start, stop in pairwise(edges):
        pieces: list[int] = []
        before = first = 0
        for n in lens:
            low, high = max(first, start), min(first + n, stop)
            if low < high:
                before = before if pieces else low - first
                pieces.append(high - low)
            first += n
        out.append(Share(start, stop, tuple(pieces), before))
    return tuple(out)


def tails(
    parts: tuple[Share, ...], rank: int, past: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(tokens that one rank sends to each, tokens that it gets from each).

    Every rank gets the last `past` tokens, None for all of them, that its first
    document has on earlier ranks. What is sent is always the end of a share.
    """

    def wanted(reader: int, owner: int) -> int:
        share, held = parts[reader], parts[owner]
        reach = share.before if past is None else min(share.before, past)
        low, high = max(share.start - reach, held.start), min(share.start, held.stop)
        return max(high - low, 0)

    every = range(len(parts))
    sent = tuple(wanted(reader, rank) for reader in every)
    return sent, tuple(wanted(rank, owner) for owner in every)
