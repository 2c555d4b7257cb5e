"""The running planner of MoonEP against the equation's, exactly."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.parallel import moonep as fast
from k3.spec import experts as spec


@st.composite
def loads(draw):
    ranks, per = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    load = draw(st.lists(st.integers(0, 9), min_size=ranks * per, max_size=ranks * per))
    load[0] += -sum(load) % ranks
    return load, ranks


@settings(max_examples=40)
@given(loads())
def test_the_plan_is_the_specs(drawn):
    load, ranks = drawn
    planned = fast.plan(load, ranks)
    want = spec.plan(load, ranks)
    got = [{int(e): int(row[e]) for e in np.flatnonzero(row)} for row in planned]
    assert got == want
    for rank, work in enumerate(want):
        found = spec.redundant(rank, work, len(load), ranks)
        assert len(fast.fetched(planned, rank)) == found


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 20))
def test_bounds_and_homes_are_the_specs(ranks, per):
    experts = ranks * per
    assert fast.bound(experts, ranks) == spec.bound(experts, ranks)
    assert fast.tight_bound(experts, ranks) == spec.tight_bound(experts, ranks)
    want = [spec.home(e, experts, ranks) for e in range(experts)]
    assert fast.homes(experts, ranks).tolist() == want
