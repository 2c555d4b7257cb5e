"""The learning rate rises, stays and falls to zero."""

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
