import math

import numpy as np
import pytest
from readings.carriers import same

from k3.spec import rl


def test_reward_reads_alike_and_stays_inside():
    teacher, student = np.array([0.7, 0.001, 0.4, 1.0]), np.array([0.08, 0.9, 0.4, 0.5])
    got = same(rl.reward, teacher, student, 5)
    assert got[0] == pytest.approx(2.169, abs=5e-4)
    assert got[1] == -5
    assert got[2] == 0
    assert got[3] == pytest.approx(math.log(2))
    assert (abs(same(rl.reward, teacher, student, 1.5)) <= 1.5).all()


def test_nine_teachers():
    assert len(set(rl.TEACHERS)) == 9


def test_budget():
    value = np.float64(0.5)
    assert same(rl.budgeted, value, 100, 50, 2, exact=True) == 0.5
    assert same(rl.budgeted, value, 101, 50, 2, exact=True) == -1
    once = rl.budgeted(0.5, 101, 50, 2)
    assert rl.budgeted(once, 101, 50, 2) == once


def test_verdict():
    assert rl.verdict("first", 100, 50, 2) == "first"
    assert rl.verdict("first", 101, 50, 2) == "second"
    assert rl.verdict("tie", 10, 50, 2) == "tie"


def test_partial_rollout_ends():
    assert rl.rollout_ends(8, 2, 5, 0.8)
    assert not rl.rollout_ends(7, 2, 5, 0.8)
