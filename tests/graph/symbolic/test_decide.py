"""Packed steps equal their coordinates for all sizes; mutants never do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph import primitives as p
from k3.graph.mutants import mutants
from k3.graph.symbolic import coordinates, same
from k3.graph.term import Block


@pytest.fixture(scope="module")
def verdicts():
    """All verdicts, in a process whose calls are not checked argument by argument."""
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("verdicts.py"))],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", coordinates)
def test_graph_equals_its_coordinates_for_all_sizes(verdicts, name):
    assert verdicts["steps"][name] == [True, ""]


@pytest.mark.parametrize("name", coordinates)
def test_coordinates_are_the_spec(verdicts, name):
    """The same text on floats: the reference is not what the graph happens to be."""
    errors = verdicts["errors"][name]
    assert len(errors) == 3
    assert max(errors) < 1e-9


@pytest.mark.parametrize(
    "mutant",
    [m for m in mutants if m.step in coordinates],
    ids=lambda m: f"{m.step}: {m.name}",
)
def test_no_mutant_is_proved(verdicts, mutant):
    equal, why = verdicts["mutants"][f"{mutant.step}: {mutant.name}"]
    assert equal is not True
    assert why


def test_absorbed_is_expanded_for_all_sizes():
    verdict = same(graph.get("mla_step"), graph.get("mla_step_absorbed"))
    assert verdict.equal is True


def test_sides_that_do_not_fit_are_refused():
    x = p.real("x", "D")
    with pytest.raises(ShapeError, match="the same outputs: got y and z; name them"):
        same(Block("a", "", {"y": x}), Block("b", "", {"z": x}))
    other = p.real("x", "E")
    with pytest.raises(ShapeError, match=r"x has \[D\] and \[E\]; declare it alike"):
        same(Block("a", "", {"y": x}), Block("b", "", {"y": other}))
    with pytest.raises(ShapeError, match=r"need one shape: got \[D\] and \[\]"):
        same(Block("a", "", {"y": x}), Block("b", "", {"y": p.total(x, 0)}))
