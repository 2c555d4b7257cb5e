"""The kernels' code moves into a large page while they run, or stays where it is."""

import ctypes
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from k3.kernels.native import library, norm, pages

pytestmark = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)
MAPS = Path("/proc/self/maps")


def move():
    done = ctypes.c_int64(7)
    library.function("k3_code_pages", "p")(ctypes.addressof(done))
    return done.value


def result():
    x = torch.arange(300.0).view(4, 75)
    return norm.rms_norm(x, torch.ones(75), 1e-5)


def test_code_that_is_moved_while_it_runs_gives_the_same():
    want, stop = result(), []

    def run():
        same = [torch.equal(result(), want)]
        while not stop:
            same.append(torch.equal(result(), want))
        return all(same)

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run) for _ in range(2)]
        moved = {move() for _ in range(20)}
        stop.append(True)
        assert all(each.result() for each in runs)
    assert moved <= {0, 1}
    assert torch.equal(result(), want)


@pytest.mark.skipif(not pages.own_code(), reason="this system gives code no large page")
def test_moved_code_lies_in_no_file_and_a_forked_child_runs_it():
    assert move() == 1
    code = [x.split() for x in MAPS.read_text().splitlines() if " r-xp " in x]
    assert not [x for x in code if f"/k3-{library.level()}-" in x[-1]]
    child = os.fork()
    if not child:
        os._exit(0 if torch.isfinite(result()).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_where_there_is_no_room_the_code_stays():
    want = result()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, before[1]))
    try:
        moved = move()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert moved == 0
    assert torch.equal(result(), want)
