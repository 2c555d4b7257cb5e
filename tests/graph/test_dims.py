import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import ShapeError
from k3.graph import dims
from k3.graph.dims import Compound, at_most, atoms, parse, plus, show, times, value

NAMES = st.sampled_from(["H", "K", "n", "T"])
# Nests of names and integers, made into dimensions by the test.
NESTS = st.recursive(
    st.one_of(NAMES, st.integers(0, 4)),
    lambda inner: st.tuples(st.sampled_from("+*"), st.lists(inner, max_size=3)),
    max_leaves=6,
)
SIZES = {"H": 2, "K": 3, "n": 1, "T": 4}


def dim(nest):
    if not isinstance(nest, tuple):
        return nest
    op, parts = nest
    return {"+": plus, "*": times}[op](*map(dim, parts))


@given(NESTS)
def test_text_and_back(nest):
    made = dim(nest)
    assert parse(show(made)) == made


@given(NESTS, NESTS)
def test_sums_and_products_have_their_size(a, b):
    a, b = dim(a), dim(b)
    assert value(plus(a, b), SIZES) == value(a, SIZES) + value(b, SIZES)
    assert value(times(a, b), SIZES) == value(a, SIZES) * value(b, SIZES)


@given(NESTS, NESTS)
def test_polynomials_decide_at_most_soundly(a, b):
    a, b = dim(a), dim(b)
    assert at_most(a, plus(a, b))
    if at_most(a, b):
        assert value(a, SIZES) <= value(b, SIZES)


def test_order_of_the_parts_is_kept():
    assert times("H", "K") != times("K", "H")
    assert plus("P", 1) != plus(1, "P")
    assert plus("P", 1, 1) == plus("P", 2)
    assert times(2, 3) == 6
    assert times("H", 1) == "H"
    assert atoms((2, 3, "H", 1)) == atoms((6, "H")) == (6, "H")
    assert atoms(("H", plus("n", "T"))) == ("H", plus("n", "T"))
    assert str(Compound("*", ("M", plus("n", "r")))) == "M*(n+r)"


def test_text_that_is_no_dimension():
    with pytest.raises(ShapeError, match=r"names, integers, \+ and \*: got 'H-1'"):
        parse("H-1")
    with pytest.raises(ShapeError, match="got 'H K'"):
        parse("H K")


def test_solve_finds_the_one_unknown():
    sizes = {"n": 2}
    assert dims.solve(parse("M*(n+r)"), 12, {**sizes, "r": 1}) is True
    known = {**sizes, "M": 3}
    assert dims.solve(parse("M*(n+r)"), 12, known)
    assert known["r"] == 2
    assert not dims.solve(parse("M*(n+r)"), 13, dict(sizes, M=3))
    assert not dims.solve(parse("M*r"), 12, {})


def test_missing_size_names_it():
    with pytest.raises(ShapeError, match="K has none"):
        value(times("H", "K"), {"H": 2})
