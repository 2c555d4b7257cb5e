"""Choices by value: the larger, the smaller, the magnitude, and tests as 0 and 1."""

from k3.graph import primitives as p
from k3.graph.term import Term, constant, spread


def larger(a: Term, b: Term) -> Term:
    """max(a, b), entry by entry."""
    return p.where(p.less(a, b), b, a)


def smaller(a: Term, b: Term) -> Term:
    """min(a, b), entry by entry."""
    return p.where(p.less(b, a), b, a)


def magnitude(x: Term) -> Term:
    """|x|, entry by entry."""
    return larger(x, -x)


def indicator(choice: Term) -> Term:
    """1 where the choice is true, else 0, as reals."""
    one, zero = (spread(constant(n), choice.shape) for n in (1, 0))
    return p.where(choice, one, zero)


def below(a: Term, b: Term) -> Term:
    """1 where a < b, else 0."""
    return indicator(p.less(a, b))


def at_least(a: Term, b: Term) -> Term:
    """1 where a >= b, else 0."""
    return 1 - below(a, b)


def same(a: Term, b: Term) -> Term:
    """1 where a = b, else 0, for reals."""
    return at_least(a, b) * at_least(b, a)


def peak(x: Term) -> Term:
    """The largest entry of a vector."""
    return p.pick(p.gather(x, p.topk(x, 1)), 0)


def entry(table: Term, place: Term) -> Term:
    """table[place] for a whole real number, 0 outside of the table [E]. Scalar."""
    here = same(p.positions(table.shape[0]), spread(place, table.shape))
    return p.total(table * here, 0)
