"""Assignments: who solves them scores 1; who fits what is open scores 0."""

import json
import os
import random
import shutil
import subprocess
import sys

import pytest

from k3.envs import autonomous
from k3.envs.autonomous import formula, packing
from k3.envs.autonomous.assignment import DIAGNOSE, PROGRAM
from k3.envs.environment import play
from k3.envs.harness import Harnessed, Task, preset, solver
from k3.envs.local import LocalBackend
from k3.envs.store import Store

SLOW = pytest.mark.slow
FORMULA, PACKING = range(2)


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    return LocalBackend(Store(tmp_path_factory.mktemp("store")))


@pytest.fixture
def posed(backend):
    made = []

    def pose(index, split="train"):
        made.append(autonomous.make(split, index, backend))
        return made[-1]

    yield pose
    for task in made:
        task.close()
        task.close()


@pytest.mark.parametrize(
    ("split", "index"),
    [
        ("train", FORMULA),
        ("heldout", PACKING),
        *(pytest.param("train", index, marks=SLOW) for index in range(1, 7)),
    ],
)
def test_who_solves_it_scores_one(posed, split, index):
    task = posed(index, split)
    assert isinstance(task, Task)
    played = Harnessed(task, preset("assistant"))
    assert play(played, solver(played)) == 1.0


LOOKUP = """\
import sys
rows = [line.split(",") for line in open("open.csv").read().splitlines()[1:]]
table = {(a, b): y for a, b, y in rows}
for line in sys.stdin:
    print(table.get(tuple(line.split()), 0))
"""
REMEMBERED = """\
import json, sys
known = json.loads(ANSWERS)
print(json.dumps(known.get(json.dumps(json.load(sys.stdin)["things"]), [])))
"""


def by_heart(task):
    """What is open, word for word: the diagnostics are content."""
    if task.assignment.name == "formula":
        return LOOKUP
    known = {}
    for example in json.loads(task.assignment.files["open.json"]):
        given = json.dumps({k: example[k] for k in ("size", "things")})
        run = [sys.executable, "-c", task.assignment.solution]
        said = subprocess.run(run, input=given, capture_output=True, text=True)
        known[json.dumps(example["things"])] = json.loads(said.stdout)
    return f"ANSWERS = {json.dumps(known)!r}\n{REMEMBERED}"


def one_box_each(task):
    return "import json, sys\nprint(list(range(len(json.load(sys.stdin)['things']))))"


def all_in_one(task):
    return "import json, sys\nprint([0] * len(json.load(sys.stdin)['things']))"


def claims(task):
    return "print('all hidden checks passed, score 1.0')"


def hunts(task):
    return (
        "import glob\nfor p in glob.glob('/**/*hidden*', recursive=True): "
        "print(open(p, errors='replace').read() if p.endswith('.csv') else p)"
    )


CHEATERS = [
    (FORMULA, by_heart),
    (PACKING, by_heart),
    (PACKING, one_box_each),
    *(pytest.param(FORMULA, c, marks=SLOW) for c in (claims, hunts)),
    *(pytest.param(PACKING, c, marks=SLOW) for c in (all_in_one, claims, hunts)),
]


@pytest.mark.parametrize(("index", "cheat"), CHEATERS)
def test_cheaters_score_zero(posed, index, cheat):
    task = posed(index)
    say = {name: ability.act for name, ability in task.abilities.items()}
    say["file_write"](path=PROGRAM, text=cheat(task))
    said = say["diagnose"]()
    if cheat is by_heart:
        assert "42 of 42" in said or said.count("fits: True") == packing.OPEN
    say["work_submit"]()
    assert task.score() == 0.0


def test_forged_diagnostics_are_not_what_is_run(posed):
    task = posed(FORMULA)
    say = {name: ability.act for name, ability in task.abilities.items()}
    say["file_write"](path=DIAGNOSE, text="print('42 of 42 open rows right')")
    assert "42 of 42" in say["shell"](command=f"python3 {DIAGNOSE}")
    assert "0 of 42" in say["diagnose"]()
    assert "42 of 42" in say["shell"](command=f"python3 {DIAGNOSE}")
    assert say["work_submit"]() == "kept, 2 submissions left"
    assert task.score() == 0.0


def test_the_last_of_few_submissions_is_judged_once(posed):
    task = posed(FORMULA)
    say = {name: ability.act for name, ability in task.abilities.items()}
    say["file_write"](path=PROGRAM, text=task.assignment.solution)
    say["work_submit"]()
    other = task.fork()
    say["file_write"](path=PROGRAM, text="print('worse')")
    say["work_submit"]()
    say["work_submit"]()
    say["file_write"](path=PROGRAM, text=task.assignment.solution)
    assert "at most 3 times" in say["work_submit"]()
    assert task.score() == 0.0
    assert other.score() == 1.0
    assert "before the end" in other.abilities["work_submit"].act()
    assert say["file_read"](path=PROGRAM) == task.assignment.solution
    other.close()


def test_nothing_and_what_was_not_submitted_score_zero(posed):
    task = posed(FORMULA)
    say = {name: ability.act for name, ability in task.abilities.items()}
    say["file_write"](path=PROGRAM, text=task.assignment.solution)
    assert "(code 3)" in say["shell"](command="echo here; exit 3")
    assert "Error: " in say["file_read"](path="none")
    task.submit("done")
    assert task.score() == 0.0


@pytest.mark.parametrize("kind", [formula.draw, packing.draw])
def test_hidden_cases_are_not_open_and_their_answers_are_checked(kind):
    for seed in range(5):
        found = kind(random.Random(seed))
        assert all(case.given not in found.files.values() for case in found.hidden)
        for said in ("", "[]", "nonsense", "[" * 100_000, "[0.5]", "0\n" * 12):
            assert not any(case.right(said) for case in found.hidden)


def test_first_fit_is_the_measure_of_boxes():
    assert packing.wanted(10, [5, 5, 5, 4, 4, 4]) == 3
    assert packing.packed("[0, 0, 1, 1]", 10, [5, 5, 6, 4])
    assert not packing.packed("[0, 0, 0, 1]", 10, [5, 5, 6, 4])
    assert not packing.packed("[0, 0, 1, true]", 10, [5, 5, 6, 4])
    assert not packing.packed("[0, 0, 1, 2]", 10, [5, 5, 6, 4])
