"""Every small change of a step is refused, refuted or equal; none stays undecided."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph.mutate import fate, variants

QUICK = ["expert", "kda_update", "attn_res", "attn_res_depth", "mla_step"]
LONG = ["mla_step_absorbed", "moe", "kda_layer", "vision_project"]

# The release's 1e-20 under the sum of the chosen scores is below a float's rounding.
BELOW_ROUNDING = {"moe": 2}


def surveyed(steps):
    """The fates, from a process whose calls are not checked argument by argument."""
    script = Path(__file__).with_name("survey.py")
    ran = subprocess.run(
        [sys.executable, str(script), *steps],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def check(steps):
    found = surveyed(steps)
    for step in steps:
        count, undecided = found[step]
        assert count["refuted"] >= 2, step
        assert len(undecided) == BELOW_ROUNDING.get(step, 0), undecided
    return found


def test_small_changes():
    found = check(QUICK)
    assert sum(sum(count.values()) for count, _ in found.values()) > 80
    # Equal ones are operands of a commutative operation, exchanged.
    assert sum(count.get("equal", 0) for count, _ in found.values()) < 12


@pytest.mark.slow
def test_small_changes_of_the_long_steps():
    check(LONG)


def test_each_fate():
    block = graph.get("expert")
    made = dict(variants(block))
    swap = next(v for what, v in made.items() if what.startswith("mul exchanged"))
    assert fate("expert", swap) == "equal"
    drop = next(v for what, v in made.items() if what.startswith("no tanh"))
    assert fate("expert", drop) == "refuted"
    assert fate("expert", ShapeError("refused")) == "refused"
    assert any("up_proj.weight for gate_proj.weight" in what for what in made)
