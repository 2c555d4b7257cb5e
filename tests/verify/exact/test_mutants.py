"""Wrong edits of the shipped source: all are caught, each in the right module."""

import pytest
from mutants import checks

NAMES = [m.name for m in checks.MUTANTS]
# The shapes of the program are checked where its layers are tested.
pytestmark = pytest.mark.usefixtures("unchecked")


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES) >= 60


@pytest.mark.parametrize("mutant", checks.MUTANTS, ids=NAMES)
def test_mutant_is_killed_and_located(mutant):
    first = checks.kill(mutant, bits=31)
    assert first, "the mutant was not told from the program"
    assert mutant.at in first


PLACES = {
    "decay after the correction": ("kda.py", "step"),
    # One call early: weighted latents occur in no expanded reference.
    "absorbed output takes key rows": ("mla.py", "_over_rows"),
    "depth key norm without weight": ("attn_res.py", "mix"),
    "latent norm missing": ("moe.py", "forward"),
    "router without its 1e-20": ("moe.py", "choose"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_the_line_is_found(name):
    mutant = checks.MUTANTS[NAMES.index(name)]
    place = checks.report(mutant, bits=31).place
    assert place.file.endswith(PLACES[name][0])
    assert place.function == PLACES[name][1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_no_false_alarm(seed):
    from k3.verify.exact import run
    from k3.verify.exact.equal import differ, with_weights
    from k3.verify.exact.mode import ExactMode
    from k3.verify.exact.number import Reference
    from k3.verify.exact.tower import Tower

    it = checks.pair("decoder")
    tower, inputs = Tower(50, 3, seed), with_weights(it.program, it.inputs)
    ran = run.program(it.program, inputs, ExactMode(tower, "hash"), it.cut_points)
    wanted = run.reference(it.reference, inputs, Reference(tower, "hash"), True)
    for name in ran.cuts.seen:
        assert not differ(name, ran.cuts.rows(name), wanted.cuts.rows(name))
    got, want = (run.values(r.outputs["out"], tower) for r in (ran, wanted))
    assert not differ("out", got, want)
