"""One form for all polynomials that differ in the names of bound variables only.

A sum is cut into components that share no variable; in each, variables are ordered by
how they occur, and among equals by trying every order. Forms are numbered, so that
comparing two is comparing integers. A bound variable is written as the height of its
sum (one more than the sums inside) and its rank there.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from math import factorial, prod
from typing import Any

from k3.graph.symbolic.index import Place, Undecided, renamed, variables

# What some variables are called: pairs of a variable and a place, in a fixed order.
Names = tuple[tuple[str, Any], ...]
# Orders of look-alike variables that are tried in one component.
ORDERS = 5040

_count = itertools.count()


class Frozen:
    """A polynomial inside an atom; its hash, variables and height are kept."""

    __slots__ = ("free", "hash", "height", "terms")

    def __init__(self, terms: Iterable[tuple[Any, Fraction]]) -> None:
        self.terms = tuple(terms)
        self.hash = hash(self.terms)
        self.free: frozenset[str] = frozenset().union(
            *(_monomial_free(m) for m, _ in self.terms)
        )
        self.height: int = max((_monomial_height(m) for m, _ in self.terms), default=0)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Frozen) or self.hash != other.hash:
            return False
        return self.terms == other.terms


@cache
def free(a: Any) -> frozenset[str]:
    """The free variables of an atom."""
    if a[0] == "fn":
        return frozenset().union(*(p.free for p in a[2]))
    return frozenset(v for v, _ in variables(a[_head(a) :]))


def _head(a: Any) -> int:
    """How much of an atom is not places: its tag, and the name of an input."""
    return 2 if a[0] == "leaf" else 1


def _monomial_free(m: Any) -> frozenset[str]:
    inside: frozenset[str] = frozenset().union(*(free(a) for a, _ in m[1]))
    return inside - {v for v, _ in m[0]}


def _height(a: Any) -> int:
    return max((p.height for p in a[2]), default=0) if a[0] == "fn" else 0


def _monomial_height(m: Any) -> int:
    inside = max((_height(a) for a, _ in m[1]), default=0)
    return inside + 1 if m[0] else inside


def substituted(a: Any, change: Callable[[Place], Place]) -> Any:
    """An atom with its free variables changed; bound names are unique, so none is
    captured.
    """
    if a[0] == "dim":
        return a
    if a[0] == "fn":
        return ("fn", a[1], tuple(_changed(p, change) for p in a[2]))
    head = _head(a)
    return (*a[:head], *(renamed(part, change) for part in a[head:]))


def _changed(p: Frozen, change: Callable[[Place], Place]) -> Frozen:
    if not any(change(("v", v, "")) != ("v", v, "") for v in p.free):
        return p
    return Frozen(
        ((m[0], tuple((substituted(a, change), k) for a, k in m[1])), c)
        for m, c in p.terms
    )


def swapped(a: Any, name: str, place: Place) -> Any:
    """An atom with one variable replaced by a place."""
    if name not in free(a):
        return a
    return substituted(a, lambda v: place if v[1] == name else v)


def components(bound: Any, factors: Any) -> tuple[list[Any], list[Any]]:
    """Monomials that share no bound variable, and the factors that have none."""
    own = {v for v, _ in bound}
    groups: list[tuple[set[str], list[Any]]] = []
    alone = []
    for a, k in factors:
        here = set(free(a) & own)
        if not here:
            alone.append((a, k))
            continue
        touched = [g for g in groups if g[0] & here]
        groups = [g for g in groups if not g[0] & here]
        names = here.union(*(g[0] for g in touched))
        groups.append((names, [f for g in touched for f in g[1]] + [(a, k)]))
    sums = [
        (tuple((v, d) for v, d in bound if v in names), tuple(inside))
        for names, inside in groups
    ]
    return sums, alone


def poly(terms: Iterable[tuple[Any, Fraction]]) -> int:
    """The number of a polynomial's form: equal up to names, equal numbers."""
    return _poly(Frozen(terms), ())


@cache
def monomial(m: Any) -> int:
    """The number of a monomial's form."""
    return _monomial(m, ())


@cache
def atom(a: Any) -> int:
    """The number of an atom's form, its free variables under their names."""
    return _atom(a, ())


@cache
def _number(form: Any) -> int:
    return next(_count)


def _only(names: Names, used: frozenset[str]) -> Names:
    return tuple(pair for pair in names if pair[0] in used)


@cache
def _poly(p: Frozen, names: Names) -> int:
    found: dict[int, Fraction] = {}
    for m, c in p.terms:
        key = _monomial(m, names)
        found[key] = found.get(key, Fraction(0)) + c
    return _number(("poly", tuple(sorted((m, c) for m, c in found.items() if c))))


def _monomial(m: Any, names: Names) -> int:
    sums, alone = components(*m)
    inner = tuple(sorted(_sum(s, names) for s in sums))
    return _number(("monomial", _powers(alone, names), inner))


def _powers(factors: Iterable[Any], names: Names) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    for a, k in factors:
        key = _atom(a, _only(names, free(a)))
        found[key] = found.get(key, 0) + k
    return tuple(sorted((a, k) for a, k in found.items() if k))


@cache
def _atom(a: Any, names: Names) -> int:
    if a[0] == "dim":
        return _number(a)
    if a[0] == "fn":
        inner = tuple(_poly(p, _only(names, p.free)) for p in a[2])
        return _number(("fn", a[1], inner))
    known, head = dict(names), _head(a)
    parts = [renamed(x, lambda v: known.get(v[1], v)) for x in a[head:]]
    parts = sorted(parts, key=repr) if a[0] == "same" else parts
    return _number((*a[:head], *parts))


def _sum(m: Any, names: Names) -> int:
    """The least form of one component over the orders of its variables."""
    height, forms = _monomial_height(m), []
    for order in _orders(m, names, height):
        named = [(v, ("b", height, n, d)) for n, (v, d) in enumerate(order)]
        dims = tuple(d for _, d in order)
        forms.append((dims, _powers(m[1], _named(names, named))))
    return _number(("sum", *min(forms)))


def _named(names: Names, more: Iterable[tuple[str, Any]]) -> Names:
    return tuple(sorted({**dict(names), **dict(more)}.items()))


def _orders(m: Any, names: Names, height: int) -> Iterator[list[tuple[str, str]]]:
    """Orders of the bound variables that their occurrences do not tell apart."""
    marks: Mapping[str, Any] = {}
    if len(m[0]) > 1:
        marks = {v: _mark(m, names, height, v) for v, _ in m[0]}
    order = sorted(m[0], key=lambda b: marks.get(b[0], 0))
    groups = itertools.groupby(order, lambda b: marks.get(b[0], 0))
    alike = [list(g) for _, g in groups]
    if prod(factorial(len(g)) for g in alike) > ORDERS:
        raise Undecided(f"{[len(g) for g in alike]} variables look alike")
    for each in itertools.product(*map(itertools.permutations, alike)):
        yield [b for group in each for b in group]


def _mark(m: Any, names: Names, height: int, name: str) -> Any:
    """How one bound variable occurs, when the others of the sum look alike."""
    named = [(v, ("b", height, "this" if v == name else "other", d)) for v, d in m[0]]
    return dict(m[0])[name], _powers(m[1], _named(names, named))
