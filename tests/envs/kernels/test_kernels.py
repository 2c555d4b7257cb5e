"""Kernels: right and fast scores 1, wrong, faked or slow scores 0."""

import math
import os
import shutil

import cheating_kernels as cheaters
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.envs import kernels
from k3.envs.environment import play
from k3.envs.harness import Harnessed, Task, preset, solver
from k3.envs.kernels import bench as benches
from k3.envs.kernels import operations, verdict
from k3.envs.kernels.operations import OPERATIONS
from k3.envs.local import LocalBackend
from k3.envs.store import Store
from k3.errors import RequestError

SLOW = pytest.mark.slow
RMSNORM = sorted(OPERATIONS).index("rmsnorm")
QUICK = ("BY_SAMPLE", "NO_OP", "REPLAY", "NARROW_SUM", "NO_NAN", "TAMPER", "THREAD")
CASES = [
    pytest.param(name, word, marks=() if name in QUICK else SLOW)
    for name, word in cheaters.ACCUSED.items()
]


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    return LocalBackend(Store(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def bench(backend):
    return kernels.Bench(backend, timed=(256, 2048), rounds=5)


@pytest.fixture
def posed(backend, bench):
    return lambda index=RMSNORM, split="train": kernels.make(
        split, index, backend, bench
    )


@pytest.mark.parametrize(
    ("split", "index"),
    [
        ("train", RMSNORM),
        *(pytest.param("train", i, marks=SLOW) for i in range(6)),
        *(pytest.param("heldout", i, marks=SLOW) for i in range(3)),
    ],
)
def test_right_and_fast_scores_one(backend, split, index):
    """At one of three tries: neighbours share the cache that a kernel is timed in."""
    for _ in range(3):
        bench = kernels.Bench(backend, timed=(256, 2048), rounds=5)
        task = kernels.make(split, index, backend, bench)
        assert isinstance(task, Task)
        played = Harnessed(task, preset("assistant"))
        score = play(played, solver(played))
        assert task.verdict().accused == ()
        assert 0 < score <= 1
        if score == 1.0:
            break
    assert score == 1.0, task.verdict()
    assert "submitted once" in task.abilities["kernel_write"].act(text="x")


@pytest.mark.parametrize(("name", "accused"), CASES)
def test_a_cheater_is_accused_and_scores_zero(posed, name, accused):
    task = posed()
    task.source = cheaters.source(getattr(cheaters, name), task.constant)
    assert task.score() == 0.0
    found = task.verdict()
    assert found.accused == (accused,) or "ended the grader" in found.error, found


def test_a_patched_clock_changes_nothing_and_accuses_nobody(posed):
    task = posed()
    task.source = cheaters.source(cheaters.CLOCK, task.constant)
    assert task.verdict().accused == ()
    assert min(task.verdict().seconds["kernel"]) > 0
    assert task.score() == 0.0


@SLOW
def test_who_says_ready_before_it_is_has_no_answers(posed):
    task = posed()
    task.source = cheaters.source(cheaters.EARLY, task.constant)
    assert task.score() == 0.0


@SLOW
@pytest.mark.parametrize("index", range(3))
def test_the_reference_is_right_and_worth_nothing(posed, index):
    task = posed(index)
    task.source = operations.reference(task.operation, task.constant)
    assert task.verdict().accused == ()
    assert task.verdict().error_relative < verdict.TOLERANCE / 4
    assert task.score() == 0.0


def test_what_does_not_compile_scores_zero_and_is_told(posed):
    task = posed()
    say = {name: ability.act for name, ability in task.abilities.items()}
    assert say["kernel_read"]() == "nothing"
    assert say["kernel_write"](text="int main(") == "written"
    assert "Error: it does not compile" in say["kernel_check"]()
    assert task.fork().source == "int main("
    assert task.score() == 0.0


def test_nothing_scores_zero(posed):
    task = posed()
    task.submit("score 1.0")
    assert task.score() == 0.0


def test_a_kernel_is_checked_so_often_and_no_more(posed):
    task = posed()
    task._checks = 8
    assert "at most 8 times" in task.abilities["kernel_check"].act()
    long = "/" * 100_001
    assert "at most 100000 bytes" in task.abilities["kernel_write"].act(text=long)


SECONDS = st.floats(1e-6, 10.0)


@given(SECONDS, SECONDS, SECONDS, st.floats(1.0, 10.0), st.floats(0.1, 1.0))
def test_marks_never_fall_with_speed(kernel, plain, copy, faster, share):
    marks = kernels.marks(kernel, plain, copy, share)
    assert 0.0 <= marks <= kernels.marks(kernel / faster, plain, copy, share) <= 1.0


def test_marks_at_their_ends():
    assert kernels.marks(10.0 / verdict.LEAST, 10.0, 1.0, 0.5) == 0.0
    assert kernels.marks(2.0, 10.0, 1.0, 0.5) == 1.0
    middle = math.sqrt(10.0 / verdict.LEAST * 2.0)
    assert kernels.marks(middle, 10.0, 1.0, 0.5) == pytest.approx(0.5)
    assert kernels.marks(2.0, 3.0, 1.0, 0.35) == 1.0


def test_instances_depend_on_split_and_index(posed):
    made = [posed(i, s).goal for s in ("train", "heldout") for i in range(6)]
    assert made == [posed(i, s).goal for s in ("train", "heldout") for i in range(6)]
    assert len(set(made)) == len(made)


def test_without_a_compiler_it_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequestError, match="the system's C compiler: got none"):
        benches.compiler()
