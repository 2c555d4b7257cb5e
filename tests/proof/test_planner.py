"""MoonEP: the logic's plan, computed, meets the bounds and is the spec's planner."""

import random

import pytest

from k3.logic.falsify import call
from k3.proof import fills
from k3.proof.planner import TALLY
from k3.spec import experts as spec

SIZES = [(1, 1), (2, 2), (3, 1), (4, 3), (6, 4)]


def loads(rng, ranks, each, most):
    """Slots of every expert, with a whole average over the ranks."""
    slots = [rng.choice([0, rng.randint(0, most)]) for _ in range(ranks * each)]
    slots[rng.randrange(len(slots))] += -sum(slots) % ranks
    return slots


def planned(slots, ranks):
    """The logic's plan: number, kept slots, source, received slots of every rank."""
    each = len(slots) // ranks
    held = [(r, tuple(slots[r * each : (r + 1) * each])) for r in range(ranks)]
    average = sum(slots) // ranks
    return call(fills.PLAN, [average, held[0], tuple(held[1:]), ranks - 1])


@pytest.mark.parametrize(("ranks", "each"), SIZES)
def test_both_plans_meet_the_bounds(ranks, each):
    rng = random.Random(f"{ranks} {each}")
    moves = 0
    for _ in range(30):
        slots = loads(rng, ranks, each, 9)
        average, computed = sum(slots) // ranks, [0] * len(slots)
        plan = planned(slots, ranks)
        assert sorted(rank for (rank, _), _ in plan) == list(range(ranks))
        for (rank, kept), (source, received) in plan:
            assert sum(kept) + sum(received) == average
            assert len(received) <= spec.bound(len(slots), ranks) == each
            assert min(kept + received) >= 0
            moves += source != rank and any(received)
            for home, some in ((rank, kept), (source, received)):
                for place, count in enumerate(some):
                    computed[home * each + place] += count
        assert computed == slots
        for rank, work in enumerate(spec.plan(slots, ranks)):
            assert sum(work.values()) == average
            assert spec.redundant(rank, work, len(slots), ranks) <= each
    assert (moves > 0) == (ranks > 1)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_with_one_expert_a_rank_the_plans_are_equal(ranks):
    """Without ties, and with nothing to choose within a source."""
    rng = random.Random(ranks)
    for _ in range(20):
        slots = [rng.randrange(10**6) for _ in range(ranks)]
        slots[0] += -sum(slots) % ranks
        found = [{} for _ in range(ranks)]
        for (rank, kept), (source, received) in planned(slots, ranks):
            for home, some in ((rank, kept), (source, received)):
                for count in filter(None, some):
                    found[rank][home] = count
        assert found == spec.plan(slots, ranks)


@pytest.mark.parametrize(("ranks", "each"), SIZES)
def test_a_tally_reads_every_expert(ranks, each):
    rng = random.Random(f"{each} {ranks}")
    slots = loads(rng, ranks, each, 9)
    for rank in range(ranks):
        for place in range(each):
            one = lambda r, k: int((r, k) == (rank, place))  # noqa: B023, E731
            tallied = call(TALLY, [work(one), planned(slots, ranks)])
            assert tallied == slots[rank * each + place]


def work(weight):
    """The slots that a rank computes, weighed."""

    def of(done):
        return sum(
            weight(rank, place) * count
            for rank, some in done
            for place, count in enumerate(some)
        )

    return of
