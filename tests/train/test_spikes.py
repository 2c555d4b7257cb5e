"""What is a spike, and what is only noise."""

import math
import random

import pytest

from k3.train import spikes
from k3.train.spikes import Recent


def noise(mean, count=spikes.WINDOW):
    chance = random.Random(1)
    return [mean + chance.gauss(0, 0.1) for _ in range(count)]


def test_numbers_that_are_not_finite_are_refused_from_the_first_step():
    for loss, norm in ((math.nan, 1.0), (1.0, math.inf), (-math.inf, 1.0)):
        reason = spikes.refusal(loss, norm, Recent(), 6.0)
        assert reason == f"not finite: loss {loss} and gradient norm {norm}"


def test_nothing_else_is_refused_before_there_is_something_to_compare_with():
    few = Recent(noise(2.0, spikes.WINDOW // 2 - 1), noise(1.0, spikes.WINDOW // 2 - 1))
    assert spikes.refusal(1e9, 1e9, few, 6.0) == ""


def test_six_deviations_are_a_spike():
    before = Recent(noise(2.0), noise(1.0))
    assert spikes.refusal(2.3, 1.3, before, 6.0) == ""
    assert spikes.refusal(2.8, 1.0, before, 6.0).startswith("spike: loss 2.8 above 2.")
    assert spikes.refusal(2.0, 2.0, before, 6.0).startswith("spike: gradient norm 2 ab")
    assert spikes.refusal(2.8, 2.0, before, 60.0) == ""
    assert spikes.refusal(0.0, 0.0, before, 6.0) == "", "a fall is none"


def test_a_loss_that_never_moves_may_move_a_little():
    still = Recent([0.5] * 100, [0.0] * 100)
    assert spikes.refusal(0.52, 0.0, still, 6.0) == ""
    assert spikes.refusal(0.54, 0.0, still, 6.0).startswith("spike: loss")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_window_forgets_and_takes_finite_numbers_only(value):
    recent = Recent()
    for step in range(spikes.WINDOW + 10):
        recent.add(float(step), value)
    assert recent.losses[0] == 10
    assert len(recent.losses) == spikes.WINDOW
    assert recent.norms == []
