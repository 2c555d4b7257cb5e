"""The simulator against closed formulas, and vision in the bubbles."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import ConfigError
from k3.parallel import schedule
from k3.parallel.schedule import Action
from k3.parallel.simulate import Costs, simulate

SIZES = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))


@settings(max_examples=25)
@given(SIZES, st.sampled_from(schedule.KINDS), st.floats(0.5, 3), st.floats(0.5, 3))
def test_the_bubble_is_p_minus_1_of_m_v_plus_p_minus_1(sizes, kind, f, b):
    p, groups, v = sizes
    m = p * groups
    order = schedule.actions(kind, p, m, v)
    run = simulate(order, Costs(forward=f, backward=b))
    assert run.span == pytest.approx((m * v + p - 1) * (f + b))
    assert run.bubble == pytest.approx((p - 1) / (m * v + p - 1), abs=1e-9)
    idle = run.span * p - sum(run.busy)
    assert idle / sum(run.busy) == pytest.approx(schedule.bubble(p, m, v), abs=1e-9)


@settings(max_examples=20)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(1, 3))
def test_what_is_held_and_sent(p, groups, v):
    m = p * groups
    gpipe = simulate(schedule.actions("gpipe", p, m, v), Costs())
    assert gpipe.peak == (m * v,) * p
    one = simulate(schedule.actions("1f1b", p, m, v), Costs())
    for rank, held in enumerate(one.peak):
        ahead = p - 1 - rank if v == 1 else 2 * (p - 1 - rank) + (v - 1) * p
        assert held == min(ahead + 1, m * v)
    # Each message of m v p - m crossings, there and back.
    assert sum(one.sent) == sum(gpipe.sent) == 2 * m * (p * v - 1)


def test_messages_lengthen_the_ends():
    order = schedule.actions("gpipe", 3, 4)
    run = simulate(order, Costs(forward=1, backward=1, message=0.5))
    assert run.span == (4 + 2) * 2 + 4 * 0.5


@pytest.mark.parametrize(
    ("buffers", "span"), [(1, 4 * (1 + 2 + 1.5)), (2, 4 * 3 + 1.5)]
)
def test_a_second_gradient_buffer_hides_the_reduction(buffers, span):
    order = schedule.actions("gpipe", 1, 4)
    run = simulate(order, Costs(reduce=1.5, buffers=buffers))
    assert run.span == span


def test_a_reduction_longer_than_a_pass_is_seen_through_two_buffers():
    order = schedule.actions("gpipe", 1, 4)
    run = simulate(order, Costs(reduce=5, buffers=2))
    # The first begins after 4 + 2 and four of them follow each other.
    assert run.span == 6 + 4 * 5


def test_vision_of_one_rank_is_its_sum():
    order = schedule.actions("1f1b", 1, 3)
    for place in ("first", "bubbles"):
        run = simulate(order, Costs(vision=(1, 2), place=place))
        assert run.span == 3 * (1 + 2 + 1 + 2)
        assert run.bubble == pytest.approx(0)


def test_vision_in_bubbles_is_shorter_than_on_the_first_stage():
    order = schedule.actions("1f1b", 4, 8)
    plain = simulate(order, Costs())
    first = simulate(order, Costs(vision=(0.5, 1)))
    filled = simulate(order, Costs(vision=(0.5, 1), shards=4, place="bubbles"))
    work = 8 * 1.5
    assert sum(filled.busy) == pytest.approx(sum(plain.busy) + work)
    assert sum(first.busy) == pytest.approx(sum(plain.busy) + work)
    assert plain.span < filled.span < first.span
    assert filled.bubble < plain.bubble < first.bubble


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 4), st.floats(0.1, 2))
def test_vision_overlaps_nothing_and_is_there_in_time(p, m, shards, size):
    order = schedule.actions("1f1b", p, m)
    costs = Costs(vision=(size, size), shards=shards, place="bubbles")
    run = simulate(order, costs)
    for rank in range(p):
        own = [x for x in run.passes if x.rank == rank]
        assert all(a.stop <= b.start + 1e-9 for a, b in pairwise(own))
    for micro in range(m):
        mine = [x for x in run.passes if x.micro == micro]
        seen = [x for x in mine if x.chunk == -1]
        assert len(seen) == 2 * shards
        text = {x.kind: x for x in mine if x.chunk == 0}
        for x in seen:
            if x.kind == "forward":
                assert x.stop <= text["forward"].start + 1e-9
            else:
                assert x.start >= text["backward"].stop - 1e-9


def test_ranks_that_wait_for_each_other_are_named():
    order = ((Action("backward", 0, 0), Action("forward", 0, 0)),)
    with pytest.raises(ConfigError, match=r"got ranks \[0\] that wait"):
        simulate(order, Costs())


def test_costs_that_mean_nothing_are_refused():
    with pytest.raises(ConfigError, match="buffers and shards at least 1"):
        Costs(buffers=0)
    with pytest.raises(
        ConfigError, match=r"place must be one of first, bubbles: got 'l"
    ):
        Costs(place="last")
