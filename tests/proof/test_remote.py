"""Remote experts: the logic's counts are those of the spec's plans."""

import random

import pytest

from k3.logic.falsify import call, evaluate
from k3.proof import remote
from k3.spec import experts as spec


@pytest.mark.parametrize(("ranks", "each"), [(1, 2), (2, 3), (4, 2), (5, 1)])
def test_counts_are_those_of_the_plans_of_the_spec(ranks, each):
    rng = random.Random(f"{ranks} {each}")
    experts, fetched = ranks * each, 0
    for _ in range(20):
        load = [rng.choice([0, rng.randint(0, 20)]) for _ in range(experts)]
        load[0] += -sum(load) % ranks
        plan = spec.plan(load, ranks)

        def home(e):
            return spec.home(e, experts, ranks)

        counts = []
        for r in range(ranks):
            away = {home(e) for e in plan[r]} - {r}
            assert len(away) <= 1
            env = {remote.uses: lambda r, e: e in plan[r], remote.home: home}  # noqa: B023
            holds = evaluate(remote._remote(remote.r), env | {remote.r: r})
            counts.append(call(remote.COUNT, [holds, experts]))
            assert counts[-1] == spec.redundant(r, plan[r], experts, ranks) <= each
        peak = [env[remote.uses], home, experts, ranks]
        assert call(remote.PEAK, peak) == max(counts)
        fetched += max(counts)
    assert (fetched > 0) == (ranks > 1)
