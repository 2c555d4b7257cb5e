"""Packed steps equal their coordinates for all sizes; mutants never do."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph import draw
from k3.graph import primitives as p
from k3.graph.dims import parse_shape
from k3.graph.mutants import mutants
from k3.graph.references import references
from k3.graph.symbolic import coordinates, same
from k3.graph.symbolic.reading import Floats
from k3.graph.symbolic.whole import decoder_block
from k3.graph.term import Block


def step(name):
    return decoder_block() if name == "decoder" else graph.get(name)


def wanted(name, block, env, sizes):
    if name in references:
        return references[name](env, sizes)
    return graph.evaluate(block, env, sizes)


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


@pytest.mark.parametrize("name", [n for n in coordinates if "absorbed" not in n])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_coordinates_are_the_spec(name, seed):
    """The same text on floats: the reference is not what the graph happens to be."""
    block = step(name)
    given = {"T": seed, "P": seed, "N": 1 + seed, "D": 2 + seed, "E": 3, "A": 1 + seed}
    sizes = {n: s for n, s in draw.sizes(block, given).items() if n in block.dims}
    env = draw.draw(block, sizes, seed)
    reading = Floats(env, sizes)
    values = wanted(name, block, env, sizes)
    outputs = coordinates[name](reading)
    assert outputs.keys() == values.keys()
    for output, (shape, entries) in outputs.items():
        axes = [reading.places(d) for d in parse_shape(shape)]
        got = np.array([entries(*at) for at in itertools.product(*axes)])
        value = np.asarray(values[output])
        np.testing.assert_allclose(
            got.reshape(value.shape), value, rtol=1e-9, atol=1e-10, err_msg=output
        )


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
