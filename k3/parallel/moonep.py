"""MoonEP, Eq. 28: a plan under which every rank computes exactly S*K slots.

A slot is one choice of one token. R ranks hold E/R experts each, expert e lies at
home on rank e // (E/R). Loads are integers; a plan is a matrix [R E] of the slots of
each expert that each rank computes. The same loads give the same plan on every rank.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from k3.errors import ConfigError, ShapeError

Slots = NDArray[np.int64]


def plan(load: Sequence[int] | Slots, ranks: int) -> Slots:
    """Eq. 28: slots of each expert that each rank computes, [R E].

    Repeat: of the ranks not yet filled, the one with fewest slots is filled up to the
    average from the one with most, its largest experts first. So a rank fetches from
    one other, and at most E/R experts.
    Matches: spec.experts.plan (exactly).
    Raises: ConfigError, ShapeError.
    """
    load = np.asarray(load, dtype=np.int64)
    home = homes(len(load), ranks)
    average, left = divmod(int(load.sum()), ranks)
    if left or (load < 0).any():
        raise ShapeError(
            "every rank must bring equally many slots to a balanced plan: got "
            f"{int(load.sum())} slots for {ranks} ranks; give each rank a row of the "
            "same length"
        )
    out = np.zeros((ranks, len(load)), dtype=np.int64)
    out[home, np.arange(len(load))] = load
    per = len(load) // ranks
    totals = out.sum(1).tolist()
    waiting = list(range(ranks))
    while len(waiting) > 1:
        source = max(waiting, key=totals.__getitem__)
        receiver = min(waiting, key=totals.__getitem__)
        waiting.remove(receiver)
        need = average - totals[receiver]
        if source == receiver or not need:
            continue
        totals[source] -= need
        held = slice(source * per, source * per + per)
        _fill(out[source, held], out[receiver, held], need)
    return out


def _fill(given: Slots, taken: Slots, need: int) -> None:
    """Move `need` slots between two ranks' rows of the same experts, largest first."""
    order = np.argsort(-given, kind="stable")
    ranked = given[order]
    before = np.cumsum(ranked) - ranked
    moved = np.clip(need - before, 0, ranked)
    given[order] -= moved
    taken[order] += moved


def homes(experts: int, ranks: int) -> Slots:
    """Return the rank that holds each expert, [E]. Raises: ConfigError."""
    if ranks < 1 or experts % ranks:
        raise ConfigError(
            f"expert must divide num_experts: got {ranks} ranks for {experts} experts; "
            "choose a divisor"
        )
    return np.arange(experts) // (experts // ranks)


def fetched(planned: Slots, rank: int) -> Slots:
    """Return the experts that a rank computes and does not hold, in rising order."""
    home = homes(planned.shape[1], planned.shape[0])
    return np.flatnonzero((planned[rank] > 0) & (home != rank))


def bound(experts: int, ranks: int) -> int:
    """Eq. 28: the most experts that a rank fetches under any load, E/R."""
    return experts // ranks


def tight_bound(experts: int, ranks: int) -> int:
    """MoonEP: the least number that some plan needs for every load."""
    return -(-experts * (ranks - 1) // ranks**2)


def sends(counts: Slots, planned: Slots, rank: int) -> Slots:
    """Return the slots of each expert that one rank sends to each, [R E].

    `counts` [R E] is what every rank's own tokens chose. A rank computes its own
    slots before others' (they cross no wire); the rest is dealt out in rank order.
    """
    own = np.minimum(counts, planned)
    out = _overlap(counts - own, planned - own, rank)
    out[rank] += own[rank]
    return out


def receives(counts: Slots, planned: Slots, rank: int) -> Slots:
    """Return the slots of each expert that one rank gets from each, [R E]."""
    own = np.minimum(counts, planned)
    out = _overlap(planned - own, counts - own, rank)
    out[rank] += own[rank]
    return out


def _overlap(ours: Slots, theirs: Slots, rank: int) -> Slots:
    """Lay both in rank order on one line an expert: how much of ours meets each's."""
    stop = np.cumsum(theirs, 0)
    last = ours[: rank + 1].sum(0)
    low = np.maximum(stop - theirs, last - ours[rank])
    return np.maximum(np.minimum(stop, last) - low, 0)
