"""Choices by value, on numbers with ties and signs."""

import numpy as np
import pytest

from k3.graph import compare, evaluate
from k3.graph import primitives as p
from k3.graph.term import Block

A = np.array([2.0, -1.0, 0.5, 0.5, -3.0])
B = np.array([2.0, 1.0, 0.25, 0.75, -4.0])


def value(term, **env):
    block = Block("compare", "one choice", {"out": term})
    return evaluate(block, {name: np.asarray(x) for name, x in env.items()}, {})["out"]


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (compare.larger, np.maximum(A, B)),
        (compare.smaller, np.minimum(A, B)),
        (compare.below, (A < B).astype(float)),
        (compare.at_least, (A >= B).astype(float)),
        (compare.same, (A == B).astype(float)),
    ],
)
def test_two_at_a_time(choice, wanted):
    found = value(choice(p.real("a", "N"), p.real("b", "N")), a=A, b=B)
    np.testing.assert_array_equal(found, wanted)


def test_one_vector():
    np.testing.assert_array_equal(
        value(compare.magnitude(p.real("a", "N")), a=A), abs(A)
    )
    assert value(compare.peak(p.real("a", "N")), a=A) == 2.0


@pytest.mark.parametrize(
    ("place", "wanted"), [(0, 2.0), (4, -3.0), (5, 0.0), (-1, 0.0)]
)
def test_an_entry_outside_of_the_table_is_zero(place, wanted):
    term = compare.entry(p.real("a", "N"), p.real("place", ""))
    assert value(term, a=A, place=float(place)) == wanted
