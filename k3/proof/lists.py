"""Functions on lists that statements use: append, length, map, sums, entries."""

from functools import cache

from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, Sort, fun, list_of
from k3.logic.syntax import cons, integer, ite, nil, real, var
from k3.logic.terms import Symbol


@cache
def append(element: Sort) -> Symbol:
    """The elements of xs, then those of ys."""
    xs, ys = var("xs", list_of(element)), var("ys", list_of(element))
    return recursive(
        f"append[{element}]",
        [xs, ys],
        list_of(element),
        lambda ys: ys,
        lambda h, t, rec, ys: cons(h, rec(ys)),
        on=0,
    )


@cache
def length(element: Sort) -> Symbol:
    """The number of elements."""
    xs = var("xs", list_of(element))
    return recursive(
        f"length[{element}]",
        [xs],
        INT,
        lambda: integer(0),
        lambda h, t, rec: rec() + 1,
    )


@cache
def mapped(element: Sort, image: Sort) -> Symbol:
    """The images of the elements under a function."""
    f, xs = var("f", fun(element, image)), var("xs", list_of(element))
    return recursive(
        f"map[{element},{image}]",
        [f, xs],
        list_of(image),
        lambda f: nil(image),
        lambda h, t, rec, f: cons(f(h), rec(f)),
    )


@cache
def total(element: Sort) -> Symbol:
    """The sum of f over the elements."""
    f, xs = var("f", fun(element, REAL)), var("xs", list_of(element))
    return recursive(
        f"total[{element}]",
        [f, xs],
        REAL,
        lambda f: real(0),
        lambda h, t, rec, f: f(h) + rec(f),
    )


@cache
def snoc(element: Sort) -> Symbol:
    """A list with one more element at the end."""
    xs, e = var("xs", list_of(element)), var("e", element)
    return recursive(
        f"snoc[{element}]",
        [xs, e],
        list_of(element),
        lambda e: cons(e, nil(element)),
        lambda h, t, rec, e: cons(h, rec(e)),
        on=0,
    )


@cache
def entry(element: Sort) -> Symbol:
    """The element at a position counted from 0, or `blank` beyond the end."""
    blank, xs, i = var("blank", element), var("xs", list_of(element)), var("i", INT)
    return recursive(
        f"entry[{element}]",
        [blank, xs, i],
        element,
        lambda blank, i: blank,
        lambda h, t, rec, blank, i: ite(i <= 0, h, rec(blank, i - 1)),
        on=1,
    )
