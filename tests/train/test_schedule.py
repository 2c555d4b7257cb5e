"""The learning rate rises, stays or not, and falls to zero."""

import itertools
import math

import pytest

from k3.train import schedule


def test_values_of_a_short_run():
    found = [schedule.trapezoid(s, 10, 0.2, 0.5) for s in range(11)]
    want = [0.5, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2, 0]
    assert found == pytest.approx(want)


@pytest.mark.parametrize("warmup", [0.0, 1.0])
@pytest.mark.parametrize("decay", [0.0, 1.0])
def test_first_and_last_step_move(warmup, decay):
    assert 0 < schedule.trapezoid(0, 7, warmup, decay) <= 1
    assert 0 < schedule.trapezoid(6, 7, warmup, decay) <= 1


def test_one_step():
    assert schedule.trapezoid(0, 1, 0.02, 0.5) == 1


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("name", schedule.NAMES)
def test_no_rate_is_zero_or_above_one(steps, name):
    for step in range(steps):
        assert 0 < schedule.factor(name, step, steps, 0.5, 0.5) <= 1


def test_a_name_chooses_the_schedule():
    assert schedule.factor("trapezoid", 8, 10, 0.2, 0.5) == pytest.approx(0.4)
    assert schedule.factor("cosine", 8, 10, 0.2, 0.5) == schedule.cosine(8, 10, 0.2)


def test_one_percent_is_linear_then_cosine():
    found = [schedule.cosine(step, 1000, 0.01) for step in range(1000)]
    assert found[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert found[9] == max(found) == 1
    middle = 9 + (1000 - 9) / 2
    assert schedule.cosine(math.floor(middle), 1000, 0.01) == pytest.approx(
        0.5, abs=1e-3
    )
    assert found[-1] == pytest.approx((math.pi / 2 / 991) ** 2, rel=1e-3)
    assert all(a > b for a, b in itertools.pairwise(found[9:]))


@pytest.mark.parametrize("warmup", [0.0, 0.004, 0.5, 1.0])
def test_any_warmup_begins_above_zero_and_reaches_one(warmup):
    found = [schedule.cosine(step, 7, warmup) for step in range(7)]
    assert max(found) == 1
    assert min(found) > 0
