"""Sandboxes that die in the middle of episodes: only their own samples begin anew."""

import os
import random
import shutil

import bandit
import pytest

from k3.envs.local import LocalBackend
from k3.envs.sandbox import MIB, Limits
from k3.envs.store import Store
from k3.post import journal

LIMITS = Limits(seconds=20.0, disk_bytes=MIB, processes=8, output_bytes=1000)


class Boxed(bandit.Even):
    """Each turn runs in a sandbox of the sample's own."""

    def __init__(self, number, backend, alive):
        super().__init__(number)
        self.backend, self.alive, self.box = backend, alive, None

    def begin(self):
        self.box = self.backend.create({"n": b"1"}, limits=LIMITS)
        self.alive.append(self.box)
        return super().begin()

    def reply(self, written):
        assert self.box.run(["cat", "n"]).text == "1"
        return super().reply(written)

    def close(self):
        if self.box is not None:
            self.box.destroy()


class Boxes(bandit.Numbers):
    """Prompts whose episodes have sandboxes, all of which stand in `alive`."""

    def __init__(self, chosen, backend):
        super().__init__(chosen)
        self.backend, self.alive = backend, []

    def __call__(self):
        number = self.number
        self.number += 1
        return f"even:{number}", lambda: Boxed(number, self.backend, self.alive)


def lost(tmp_path, kills, monkeypatch, **changes):
    """A run in which sandboxes of random samples die; its failures and its lines."""
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    chosen, rng, left = bandit.recipe(**changes), random.Random(5), [kills]
    prompts = Boxes(chosen, LocalBackend(Store(tmp_path / "store")))
    made = bandit.loop

    def armed(*given):
        found = made(*given)
        step = found.sampler.step

        def stepped():
            pieces = step()
            alive = [box for box in prompts.alive if box.alive]
            if left[0] and alive and rng.random() < 0.7:
                rng.choice(alive).destroy()
                left[0] -= 1
            return pieces

        found.sampler.step = stepped
        return found

    monkeypatch.setattr(bandit, "loop", armed)
    records = []
    found = bandit.run(tmp_path, chosen, prompts, records.append)
    found.rollouts.close()
    for box in prompts.alive:
        box.destroy()
    assert left == [0]
    lines = list(journal.read(tmp_path / journal.FILE_NAME))
    return sum(r["failures"] for r in records), lines


def check(lines, samples):
    finished = [line for line in lines if line["kind"] == "finished"]
    assert len({line["key"] for line in finished}) == len(finished) == samples
    assert not any(line["lost"] for line in finished)


def test_a_sandbox_that_dies_costs_its_own_sample_alone(tmp_path, monkeypatch):
    small = {"prompts": 1, "samples": 3, "iterations": 1}
    failures, lines = lost(tmp_path, 1, monkeypatch, **small)
    # One that dies after its sample has ended harms nobody.
    assert failures <= 1
    check(lines, 3)


@pytest.mark.slow
def test_ten_sandboxes_die(tmp_path, monkeypatch):
    failures, lines = lost(tmp_path, 10, monkeypatch, iterations=4)
    assert 1 <= failures <= 10
    check(lines, 48)
