"""Every micro-batch runs once through every chunk, and none waits for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import ConfigError
from k3.parallel import schedule
from k3.parallel.schedule import Action


def rounds(kind, stages, micros, virtual):
    """Run with passes of one unit: (units until done, most micro-batches held)."""
    ranks = schedule.actions(kind, stages, micros, virtual)
    done: set[tuple[str, int, int]] = set()
    at, held, units = [0] * stages, [0] * stages, 0
    most = [0] * stages
    while any(n < len(todo) for n, todo in zip(at, ranks, strict=True)):
        moved = []
        for rank in range(stages):
            if at[rank] < len(ranks[rank]):
                a = ranks[rank][at[rank]]
                number = a.chunk * stages + rank
                if a.kind == "forward":
                    ready = number == 0 or ("forward", number - 1, a.micro) in done
                else:
                    last = number == stages * virtual - 1
                    ready = ("forward", number, a.micro) in done
                    ready &= last or ("backward", number + 1, a.micro) in done
                if ready:
                    moved.append((rank, (a.kind, number, a.micro)))
        assert moved, f"stuck at {at}"
        for rank, what in moved:
            assert what not in done
            done.add(what)
            at[rank] += 1
            held[rank] += 1 if what[0] == "forward" else -1
            most[rank] = max(most[rank], held[rank])
        units += 1
    assert len(done) == 2 * stages * virtual * micros
    return units, most


@given(st.sampled_from(schedule.KINDS), st.integers(1, 6), st.integers(1, 9))
def test_no_schedule_is_stuck_and_its_bubble_is_the_formula(kind, stages, micros):
    units, _ = rounds(kind, stages, micros, 1)
    want = 2 * micros * (1 + schedule.bubble(stages, micros))
    assert units == pytest.approx(want)


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4))
def test_interleaving_shortens_the_bubble(stages, groups, virtual):
    micros = stages * groups
    units, _ = rounds("1f1b", stages, micros, virtual)
    bubble = schedule.bubble(stages, micros, virtual)
    assert units == pytest.approx(2 * micros * virtual * (1 + bubble))


def test_1f1b_holds_the_stages_ahead_and_gpipe_everything():
    assert rounds("1f1b", 4, 9, 1)[1] == [4, 3, 2, 1]
    assert rounds("gpipe", 4, 9, 1)[1] == [9, 9, 9, 9]


def test_one_forward_one_backward():
    F, B = "forward", "backward"
    first, last = schedule.actions("1f1b", 2, 3)
    want = [(F, 0), (F, 1), (B, 0), (F, 2), (B, 1), (B, 2)]
    assert first == tuple(Action(kind, 0, m) for kind, m in want)
    want = [(F, 0), (B, 0), (F, 1), (B, 1), (F, 2), (B, 2)]
    assert last == tuple(Action(kind, 0, m) for kind, m in want)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("zigzag", 2, 2), "schedule must be one of gpipe, 1f1b: got 'zigzag'"),
        (("1f1b", 0, 2), "stages must be at least 1: got 0"),
        (("gpipe", 2, 0), "micro-batches must be at least 1: got 0"),
        (("1f1b", 2, 3, 2), "multiples of the stages: got 3 for 2 stages of 2 chunks"),
        (("gpipe", 2, 3, 0), "chunks a rank must be at least 1: got 0"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        schedule.actions(*given)
