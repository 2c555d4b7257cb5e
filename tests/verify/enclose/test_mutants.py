"""Wrong edits inside one module leave the ball; the shipped source never does."""

import kills
import pytest
import torch

from k3.verify import enclose

# In fp32 and bf16 the sum of chosen scores does not change by 1e-20.
NEVER = {"router without its 1e-20"}
SURVIVORS = {
    ("fp32", 0.02): set(),
    ("fp32", 0.3): set(),
    ("bf16", 0.02): {
        "L2 eps outside the root",
        "inverse cut at first order",
        "query latent norm missing",
        "scale 1/sqrt(content)",
        "query heads interleaved",
        "sigmoid of the capped gate",
        "up capped like the gate",
        "up not capped",
        "gate not capped",
        "expert gate and up swapped",
        "biased score in the mixture",
        "weight of the unsorted slot",
        "decoding: weights out of order",
        "load: w1 and w3 swapped",
    },
    ("bf16", 0.3): {
        "L2 eps outside the root",
        "inverse cut at first order",
        "query latent norm missing",
        "scale 1/sqrt(content)",
        "absorbed mask sees the next token",
        "up not capped",
        "mixture not normalised",
        "depth eps missing",
    },
}


def test_most_mutants_live_inside_one_module():
    assert len(kills.INSIDE) >= 80


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "std"), SURVIVORS)
def test_mutants_leave_the_ball(dtype, std):
    mutants_leave_the_ball(dtype, std)


def test_every_fifth_mutant_leaves_the_ball_in_fp32():
    mutants_leave_the_ball("fp32", 0.3, kills.INSIDE[::5])


def mutants_leave_the_ball(dtype, std, mutants=kills.INSIDE):
    at = kills.scene(std, dtype)
    left = {m.name for m in mutants if not kills.outside(m, at)}
    assert left <= NEVER | SURVIVORS[dtype, std]
    assert not any(b.r.isinf().any() for balls in at.balls for b in balls.values())


SOME = [
    "L2 eps outside the root",
    "decay after the correction",
    "steep tile counts its own decay",
    "query heads interleaved",
    "parts of the context joined without weights",
    "up not capped",
    "choice ignores the bias",
    "weight of the unsorted slot",
    "depth eps missing",
    "RMSNorm eps 1e-6",
]


@pytest.mark.parametrize("name", SOME)
def test_a_mutated_program_is_no_longer_its_equation(name):
    mutant = next(m for m in kills.INSIDE if m.name == name)
    report = kills.report(mutant, kills.scene(0.3, "fp32"))
    assert not report
    assert "equation" in report.worst


@pytest.mark.slow
def test_every_mutated_program_is_no_longer_its_equation():
    at = kills.scene(0.3, "fp32")
    edits = [m for m in kills.INSIDE if isinstance(m.how, kills.Edit)]
    left = {m.name for m in edits if kills.report(m, at)}
    # What changes no bit of any module is not looked at.
    assert left == set()
    assert {m.name for m in edits if kills.report(m, at) is None} == NEVER


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("dtype", kills.DTYPES)
@pytest.mark.parametrize("std", kills.SCALES)
def test_no_false_alarm(std, dtype, seed):
    running = kills.model(std, kills.DTYPES[dtype], seed)
    for call in kills.run(running):
        options = {"got": call.got, "name": call.name}
        report = enclose.module(call.program, *call.args, **options)
        assert report, report
        assert report.equation


def test_no_false_alarm_on_a_longer_text():
    running = kills.model(0.3, torch.bfloat16, seed=3)
    report = enclose.run(running, list(range(19)), equation=False)
    assert report, report
