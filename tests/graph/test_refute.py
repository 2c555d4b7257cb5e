from fractions import Fraction

import pytest

import k3.graph as graph
from k3.graph import primitives as p
from k3.graph.references import references
from k3.graph.refute import refute
from k3.graph.term import Block


@pytest.mark.parametrize("name", graph.catalogue)
def test_no_step_is_refuted(name):
    assert refute(graph.get(name), references[name], seeds=range(18)) is None


def block(y):
    return Block("demo", "", {"y": y})


def test_an_exact_counterexample_as_a_person_wants_it():
    x, W = p.real("x", "D"), p.real("W", "D, D")
    right = block(p.contract("od,d->o", W, x))
    wrong = block(p.contract("do,d->o", W, x))
    found = refute(wrong, right)
    assert found.exact
    assert found.sizes["D"] > 1
    i, env = found.index[0], found.inputs
    assert found.graph == sum(env["W"][:, i] * env["x"])
    assert found.reference == sum(env["W"][i] * env["x"])
    assert isinstance(found.graph, int | Fraction)
    assert found.graph != found.reference
    lines = str(found).splitlines()
    assert lines[0] == f"sizes D={found.sizes['D']}"
    assert lines[1].startswith("  W = [[")
    assert lines[2].startswith("  x = [")
    assert lines[3] == (
        f"y[{i}]: graph {found.graph}, reference {found.reference} (exactly)"
    )


def test_smallest_sizes_come_first():
    x = p.real("x", "D")
    found = refute(block(x * 2), block(x * 3))
    assert found.sizes == {"D": 1}


def test_equal_functions_are_not_refuted():
    x, y = p.real("x", "D"), p.real("y", "D")
    assert refute(block((x + y) * (x - y)), block(x * x - y * y)) is None
    assert refute(block(p.exp(x) * p.exp(y)), block(p.exp(x + y))) is None


def test_overflow_is_a_difference():
    x = p.real("x", "")
    grown = x
    for _ in range(4):
        grown = p.exp(grown * grown)
    found = refute(block(grown), block(x), [{}], [0, 1, 2, 3])
    assert found is not None


def test_given_sizes_and_seeds():
    x = p.real("x", "D")
    found = refute(block(x + 1), block(x), [{"D": 4}], [9])
    assert found.sizes == {"D": 4}
    assert found.seed == 9
