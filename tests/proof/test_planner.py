"""MoonEP: the logic's plan, computed, meets the bounds and is the spec's planner."""

import random

import pytest

from k3.logic.falsify import call
from k3.proof import fills
from k3.spec import experts as spec

SIZES = [(1, 1), (2, 2), (3, 1), (4, 3), (6, 4)]


def loads(rng, ranks, each, most):
    """Slots of every expert, with a whole average over the ranks."""
    slots = [rng.choice([0, rng.randint(0, most)]) for _ in range(ranks * each)]
    slots[rng.randrange(len(slots))] += -sum(slots) % ranks
    return slots


def lower(a, b):
    """Ranks with equal loads go by number."""
    return a[0] < b[0]


def largest_first(need, slots, place):
    """What the spec moves of the expert at a place: its largest experts first."""
    for k in sorted(range(len(slots)), key=lambda k: (-slots[k], k)):
        moved = min(need, slots[k])
        if k == place:
            return moved
        need -= moved
    raise AssertionError


def in_order(need, slots, place):
    """No possible amount, so that the experts are taken in order."""
    return -1


def planned(slots, ranks, prefer=lower, pick=largest_first):
    """The logic's plan: number, kept slots, source, received slots of every rank."""
    each = len(slots) // ranks
    held = [(r, tuple(slots[r * each : (r + 1) * each])) for r in range(ranks)]
    average, rest = sum(slots) // ranks, tuple(held[1:])
    return call(fills.PLAN, [prefer, pick, average, held[0], rest, ranks - 1])


@pytest.mark.parametrize(("ranks", "each"), SIZES)
@pytest.mark.parametrize("pick", [in_order, largest_first])
def test_both_plans_meet_the_bounds(ranks, each, pick):
    rng = random.Random(f"{ranks} {each}")
    moves = 0
    for _ in range(30):
        slots = loads(rng, ranks, each, 9)
        average, computed = sum(slots) // ranks, [0] * len(slots)
        plan = planned(slots, ranks, lambda a, b: a[0] > b[0], pick)
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


@pytest.mark.parametrize(("ranks", "each"), [*SIZES, (8, 1), (5, 5)])
def test_the_planner_of_the_spec_is_an_instance(ranks, each):
    """Ties by number, largest experts first: the same plan, slot for slot."""
    rng = random.Random(ranks * each)
    for most in (1, 3, 9, 10**6):
        for _ in range(10):
            slots = loads(rng, ranks, each, most)
            found = [{} for _ in range(ranks)]
            for (rank, kept), (source, received) in planned(slots, ranks):
                for home, some in ((rank, kept), (source, received)):
                    for place, count in enumerate(some):
                        if count:
                            found[rank][home * each + place] = count
            assert found == spec.plan(slots, ranks)


@pytest.mark.parametrize(("ranks", "each"), SIZES)
def test_a_tally_reads_every_expert(ranks, each):
    rng = random.Random(f"{each} {ranks}")
    slots = loads(rng, ranks, each, 9)
    for rank in range(ranks):
        for place in range(each):
            one = lambda r, k: int((r, k) == (rank, place))  # noqa: B023, E731
            tallied = call(fills.TALLY, [work(one), planned(slots, ranks)])
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
