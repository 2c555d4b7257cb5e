"""Every packed step against the spec at random sizes: floats, balls and fractions."""

import numpy as np
import pytest
from readings import ball
from readings.carriers import fractions

import k3.graph as graph
from k3.graph import draw
from k3.graph.references import references

EXACT = ["kda_update", "splice"]
SIZES = [
    {},
    {"T": 0, "P": 0, "N": 1, "D": 3, "H": 1, "M": 1, "E": 2, "A": 2, "h2": 1, "G": 1},
    {"T": 7, "P": 1, "N": 4, "D": 7, "H": 3, "K": 5, "M": 2, "E": 9, "A": 3, "w2": 3},
    {"T": 3, "V": 1, "R": 6, "n": 5, "D": 2, "F": 1, "L": 5, "b": 3, "t": 2, "Hp": 6},
]


def case(name, given, seed):
    block = graph.get(name)
    # A sequence has tokens; a cache may have none.
    given = {**given, "T": max(given.get("T", 4), int(name == "splice"))}
    sizes = {n: s for n, s in draw.sizes(block, given).items() if n in block.dims}
    return block, sizes, draw.draw(block, sizes, seed)


def same(block, sizes, env, to_floats=np.asarray):
    got = graph.evaluate(block, env, sizes)
    wanted = references[block.name](env, sizes)
    assert got.keys() == wanted.keys()
    for name, value in got.items():
        one, other = to_floats(value), to_floats(np.asarray(wanted[name]))
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11, err_msg=name)
    return got


@pytest.mark.parametrize("name", graph.catalogue)
@pytest.mark.parametrize("at", range(len(SIZES)))
def test_floats(name, at):
    block, sizes, env = case(name, SIZES[at], at)
    same(block, sizes, env)


@pytest.mark.parametrize("name", [n for n in graph.catalogue if "encoder" not in n])
def test_balls(name):
    """Both sides enclosed at 256 bits: what they differ by is not rounding."""
    given = {"P": 1, "T": 1, "D": 2, "K": 2, "Hp": 2, "Wp": 2, "h2": 1}
    block, sizes, env = case(name, given, 1)
    env = {n: ball.array(x) if x.dtype == float else x for n, x in env.items()}
    got = graph.evaluate(block, env, sizes)
    wanted = references[name](env, sizes)
    for output, value in got.items():
        pairs = zip(value.flat, np.asarray(wanted[output]).flat, strict=True)
        for one, other in pairs:
            assert one == other or one.overlaps(other), output
            assert isinstance(one, int | np.integer) or float(one.rad()) < 1e-30


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("at", range(len(SIZES)))
def test_fractions_are_equal_without_tolerance(name, at):
    block, sizes, env = case(name, SIZES[at], at)
    env = {n: fractions(x) if x.dtype == float else x for n, x in env.items()}
    got, wanted = graph.evaluate(block, env, sizes), references[name](env, sizes)
    for output, value in got.items():
        assert np.array_equal(value, wanted[output]), output
