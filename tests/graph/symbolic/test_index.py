import numpy as np
import pytest

from k3.graph.dims import parse, parse_shape, plus, times
from k3.graph.symbolic import index
from k3.graph.symbolic.index import Undecided, backwards, position, regroup, shifted

h, p, t = (("v", n, d) for n, d in (("h", "H"), ("p", "P"), ("t", "T")))
ROW = ("k", 0)


def test_numbers_of_places():
    assert position(plus("P", 1), ("in", 1, ROW)) == {(("d", "P"),): 1}
    assert position(plus(1, "P"), ("in", 1, p)) == {(): 1, (p,): 1}
    flat = position(times("H", "P"), ("flat", (h, p)))
    assert flat == {tuple(sorted([h, ("d", "P")], key=repr)): 1, (p,): 1}
    assert position(parse("2*3"), ("k", 5)) == {(): 5}


def test_the_same_place_by_parts_and_by_number():
    axis = plus(1, "P")
    by_part = index.canonical(axis, ("in", 1, p))
    by_number = index.at({(): 1, (p,): 1})
    assert index.canonical(axis, by_number) == by_part
    assert index.canonical(axis, ("in", 0, ROW)) != by_part


def test_backwards_twice_is_forwards():
    axis = plus(1, "P")
    once = backwards(axis, ("in", 1, p))
    assert index.canonical(axis, backwards(axis, once)) == index.canonical(
        axis, ("in", 1, p)
    )
    assert backwards(3, ("k", 0)) == ("k", 2)


def test_slices_at_parts_and_elsewhere():
    axis = plus("R", "r")
    assert shifted(axis, 0, "R", t) == ("in", 0, t)
    assert shifted(axis, "R", "r", t) == ("in", 1, t)
    assert shifted("H", 0, "H", h) == h
    assert shifted(4, 1, 2, ("k", 1)) == ("k", 2)
    # The first P of 1 + P rows are no part: counted.
    assert shifted(plus(1, "P"), 0, "P", p) == index.at({(p,): 1})


@pytest.mark.parametrize(
    ("old", "new"),
    [("6", "2, 3"), ("2, 3", "3, 2"), ("3*H*4", "3, H, 2, 2"), ("2, 2, H", "4*H")],
)
def test_reshapes_of_fixed_sizes_are_numpys(old, new):
    sizes = {"H": 2}

    def shape(text):
        return tuple(
            int(np.prod([d if isinstance(d, int) else sizes[d] for d in factors(x)]))
            for x in parse_shape(text)
        )

    def factors(dim):
        return dim.parts if not isinstance(dim, int | str) else (dim,)

    def number(text, places):
        out = []
        for dim, place in zip(parse_shape(text), places, strict=True):
            n = 0
            inner = place[1] if place[0] == "flat" else (place,)
            for d, x in zip(factors(dim), inner, strict=True):
                n = n * (d if isinstance(d, int) else sizes[d]) + x[1]
            out.append(n)
        return tuple(out)

    numbers = np.arange(np.prod(shape(old))).reshape(shape(old))
    again = numbers.reshape(shape(new))
    grids = [
        [("k", n) for n in range(d if isinstance(d, int) else sizes[d])]
        for x in parse_shape(new)
        for d in factors(x)
    ]
    for flat in np.ndindex(*map(len, grids)):
        loose = [("k", n) for n in flat]
        places = []
        for x in parse_shape(new):
            taken = [loose.pop(0) for _ in factors(x)]
            places.append(taken[0] if len(taken) == 1 else ("flat", tuple(taken)))
        back = regroup(parse_shape(old), parse_shape(new), places)
        assert again[number(new, places)] == numbers[number(old, back)]


def test_a_place_that_is_not_split_is_not_followed():
    with pytest.raises(Undecided, match="not split into factors"):
        regroup(parse_shape("H, P"), parse_shape("H*P"), [index.at({(): 1})])
