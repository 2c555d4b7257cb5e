from hypothesis import given
from hypothesis import strategies as st

from k3.spec import experts


@st.composite
def loads(draw):
    ranks, each = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    load = draw(
        st.lists(st.integers(0, 40), min_size=ranks * each, max_size=ranks * each)
    )
    load[0] += -sum(load) % ranks
    return load, ranks


@given(loads())
def test_plan_is_exact_and_within_both_bounds(case):
    load, ranks = case
    plan = experts.plan(load, ranks)
    average = sum(load) // ranks
    assert [sum(work.values()) for work in plan] == [average] * ranks
    done = [sum(work.get(e, 0) for work in plan) for e in range(len(load))]
    assert done == load
    for rank, work in enumerate(plan):
        assert all(slots > 0 for slots in work.values())
        fetched = experts.redundant(rank, work, len(load), ranks)
        assert fetched <= experts.tight_bound(len(load), ranks)
        assert fetched <= experts.bound(len(load), ranks)
        sources = {experts.home(e, len(load), ranks) for e in work} - {rank}
        assert len(sources) <= 1


def test_tight_bound_is_reached():
    # One rank without work, three equally full: E = 8, R = 4.
    plan = experts.plan([0, 0, 8, 8, 8, 8, 8, 8], 4)
    fetched = experts.redundant(0, plan[0], 8, 4)
    assert fetched == experts.tight_bound(8, 4) == 2
    assert experts.tight_bound(896, 64) == 14 == experts.bound(896, 64)
