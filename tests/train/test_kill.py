"""A run that is killed at any moment goes on as if it had not been."""

import json
import random
import time

import killed
import pytest

from k3.train import report, snapshot

SECONDS = 3000


def records(directory):
    """The losses of every step, in the order in which they were written."""
    path = directory / report.FILE_NAME
    lines = path.read_text().splitlines() if path.is_file() else []
    whole = [line for line in lines if line.endswith("}")]
    return [json.loads(line) for line in whole]


def finish(directory, steps):
    process = killed.start(directory, steps)
    process.join(SECONDS)
    assert process.exitcode == 0


def kill(directory, steps, target, delay):
    """Kill -9 once the run has told of `target` steps, and a moment later."""
    process = killed.start(directory, steps)
    end = time.monotonic() + SECONDS
    while len(records(directory)) < target and process.is_alive():
        assert time.monotonic() < end
        time.sleep(0.001)
    time.sleep(delay)
    assert process.exitcode in (None, 0)
    process.kill()
    process.join()


def survives(tmp_path, kills, per_kill, seed):
    steps, chance = kills * per_kill + 1, random.Random(seed)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    cut.mkdir()
    finish(whole, steps)
    done = 0
    for _ in range(kills):
        target = min(steps - 1, done + chance.randint(0, 2 * per_kill - 1))
        kill(cut, steps, target, chance.uniform(0, 0.3))
        for path in snapshot.kept(cut):
            snapshot.read_file(path)
        done = len(records(cut))
    finish(cut, steps)
    lost = [
        {key: record[key] for key in ("step", "loss", "losses", "gradient_norm", "ema")}
        for run in (whole, cut)
        for record in records(run)
    ]
    assert len(lost) == 2 * steps
    assert lost[:steps] == lost[steps:]
    last, other = (snapshot.read(run)[0] for run in (whole, cut))
    assert last.keys() == other.keys()
    assert all(last[name].equal(other[name]) for name in last)


def test_a_run_killed_three_times_has_the_losses_of_one_that_was_not(tmp_path):
    survives(tmp_path, kills=3, per_kill=2, seed=time.time_ns())


@pytest.mark.slow
def test_a_run_killed_twenty_times_has_the_losses_of_one_that_was_not(tmp_path):
    survives(tmp_path, kills=20, per_kill=3, seed=time.time_ns())
