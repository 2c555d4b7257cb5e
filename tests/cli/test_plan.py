"""k3 plan: a budget for given axes, a mesh that fits, and refusals in sentences."""

import pytest


def test_axes_that_are_not_set_are_chosen_to_fit(k3):
    context = ("--set", "context=4")
    found = k3("plan", "--devices", 1024, "--memory", "120GiB", *context, "--json")
    value = found.json
    assert found.code == 0
    assert value["fits"] is True
    assert value["total_bytes"] == sum(value["memory_bytes"].values()) <= 120 * 2**30
    mesh = value["setup"]["mesh"]
    product = mesh["data"] * mesh["pipeline"] * mesh["expert"] * mesh["context"]
    assert product == value["devices"] == 1024
    rows = mesh["data"] * mesh["expert"]
    assert value["tokens_per_step"] == rows * 8 * 8192


def test_given_axes_are_kept_and_what_does_not_fit_is_exit_1(k3):
    axes = [part for axis in ("pipeline=8", "expert=32") for part in ("--set", axis)]
    found = k3("plan", *axes, "--set", "policy=keep")
    assert found.code == 1
    assert "released on 256 devices: pipeline=8,expert=32,data=1,context=1" in found.out
    assert "does not fit" in found.out
    assert "every figure is a formula" in found.out
    more = [*axes, "--set", "tokens=64k", "--devices", 512, "--memory", "2TB"]
    more = k3("plan", *more, "--json").json
    assert more["setup"]["mesh"]["pipeline"] == 8
    assert more["setup"]["tokens"] == 64000


def test_a_small_model_fits_one_device(k3):
    found = k3("plan", "tiny", "--memory", "1GiB")
    assert found.code == 0
    assert "on 1 devices" in found.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--memory", "80"], None),
        (["--memory", "many"], "--memory must be a size such as 80GiB or 141GB"),
        (["--memory", "0GiB"], "--memory must be a size"),
        (["--devices", "0"], "--devices must be at least 1: got 0"),
        (["--set", "expret=4"], "got expret; did you mean expert?"),
        (["--set", "expert=four"], "--set expert must be a whole number: got 'four'"),
        (["--set", "expert=5"], "expert must divide num_experts: got 5 for 896"),
        (["--set", "policy=drop"], "policy must be one of keep, recompute, eight, off"),
        (["--set", "tokens=0"], "tokens must be at least 1: got 0"),
        (["--set", "balanced=2"], "--set balanced must be true or false: got 2"),
        (
            ["--set", "context=9000"],
            "context must be at most tokens: got 9000 for 8192",
        ),
        (["--set", "virtual=2", "--set", "pipeline=3"], "in multiples of the stages"),
        (["--devices", "4"], "training must fit 80.00 GiB a device: 4 devices need"),
        (["--devices", "8", "--set", "data=3"], "no mesh of 8 devices suits"),
    ],
)
def test_what_cannot_be_planned_is_said(k3, arguments, said):
    found = k3("plan", *arguments)
    if said is None:
        assert found.code == 1
        return
    assert found.code == 2
    assert said in found.err.replace("\n", " ")
