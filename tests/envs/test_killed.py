"""A sandbox killed at any moment loses nothing that a checkpoint holds."""

import os
import random
import shutil
import signal
import threading
import time

import pytest

from k3.envs.local import LocalBackend
from k3.envs.store import Store
from k3.errors import RequestError


@pytest.fixture
def backend(tmp_path):
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    return LocalBackend(Store(tmp_path / "store"))


def work(box, held, kept):
    """Write, run and checkpoint until the sandbox dies; note what was kept."""
    while True:
        name = f"file{len(held)}"
        try:
            box.write(name, name.encode() * 100)
            box.run(["cp", name, f"copy-{name}"])
            now = box.checkpoint()
        except RequestError:
            return
        held.append(name)
        kept.append(now)


def kill_and_resume(backend, kills, rng, seconds):
    """Kill so often, each time going on from the last checkpoint; the files held."""
    held, kept = [], []
    box = backend.create()
    for _ in range(kills):
        before = len(kept)
        worker = threading.Thread(target=work, args=(box, held, kept))
        worker.start()
        # Death comes at any point of a round, but not before anything was kept.
        while len(kept) < before + 1 + rng.randrange(3):
            time.sleep(0.001)
        time.sleep(rng.random() * seconds)
        os.kill(box.pid, signal.SIGKILL)
        worker.join()
        assert not box.alive
        box = backend.create(start=kept[-1])
        for name in held:
            assert box.read(name) == name.encode() * 100
            assert box.read(f"copy-{name}") == name.encode() * 100
        argvs = [ran.argv for ran in box.transcript]
        assert argvs == [("cp", name, f"copy-{name}") for name in held]
    box.destroy()
    return held


def test_two_kills_lose_nothing(backend):
    assert len(kill_and_resume(backend, 2, random.Random(7), 0.02)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ten_kills_at_random_points_lose_nothing(backend, seed):
    assert len(kill_and_resume(backend, 10, random.Random(seed), 0.1)) >= 10
