"""Sums of products of scalar functions, over variables that range over dimensions.

A polynomial maps monomials to exact coefficients. A monomial is (bound, factors): the
variables that are summed over with their dimensions, and powers of atoms:

    ("leaf", name, places)      an entry of an input
    ("fn", name, (Frozen, ...)) a scalar function of polynomials
    ("dim", name)               a size            ("num", place)  a place's number
    ("same", place, place)      1 where two places are equal, else 0

Conventions: the inverse of 0 is 0 and 1/(ab) = 1/a 1/b; exp(a + b) = exp a exp b;
every size is at least 1 (then the sum of 1 over an axis times 1/size is 1).
"""

import itertools
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from k3.graph.dims import Dim
from k3.graph.symbolic import canonical
from k3.graph.symbolic.index import Place, Undecided, places, variables

Atom = Any
Bound = tuple[tuple[str, str], ...]
Factors = tuple[tuple[Atom, int], ...]
Monomial = tuple[Bound, Factors]
Poly = dict[Monomial, Fraction]

_fresh = itertools.count()
# More terms than this come from expanding a network, not from comparing a step.
LIMIT = 5000


def constant(value: Fraction | int) -> Poly:
    """A number."""
    return {((), ()): Fraction(value)} if value else {}


def atom(a: Atom) -> Poly:
    """An atom as a polynomial."""
    return _collected([_contracted((), [(a, 1)])])


def add(a: Mapping[Monomial, Fraction], b: Mapping[Monomial, Fraction]) -> Poly:
    """The sum, equal monomials merged."""
    return _collected([*a.items(), *b.items()])


def scale(a: Mapping[Monomial, Fraction], factor: Fraction | int) -> Poly:
    """A number times a polynomial."""
    return {m: c * factor for m, c in a.items() if factor}


def sub(a: Mapping[Monomial, Fraction], b: Mapping[Monomial, Fraction]) -> Poly:
    """The difference."""
    return add(a, scale(b, -1))


def mul(a: Mapping[Monomial, Fraction], b: Mapping[Monomial, Fraction]) -> Poly:
    """The product; bound variables are kept apart."""
    out = []
    if len(a) * len(b) > LIMIT:
        raise Undecided(f"a product of {len(a)} and {len(b)} terms: compare parts")
    for (bound, factors), c in a.items():
        for m, d in b.items():
            other, more = _refreshed(m)
            monomial, k = _contracted(bound + other, [*factors, *more])
            out.append((monomial, c * d * k))
    return _collected(out)


def total(name: str, dim: str, p: Mapping[Monomial, Fraction]) -> Poly:
    """The sum over a variable."""
    out = []
    for (bound, factors), c in p.items():
        monomial, k = _contracted((*bound, (name, dim)), factors)
        out.append((monomial, c * k))
    return _collected(out)


def function(name: str, *args: Mapping[Monomial, Fraction]) -> Poly:
    """A scalar function of polynomials; exp and inv come apart."""
    if name == "exp":
        return _exp(args[0])
    if name == "inv":
        return _inv(args[0])
    return {((), ((_fn(name, *args), 1),)): Fraction(1)}


def size(dim: Dim) -> Poly:
    """A dimension as a number."""
    if isinstance(dim, int):
        return constant(dim)
    if isinstance(dim, str):
        return {((), ((("dim", dim), 1),)): Fraction(1)}
    out = constant(0 if dim.op == "+" else 1)
    for part in dim.parts:
        out = (add if dim.op == "+" else mul)(out, size(part))
    return out


def over(dim: Dim, body: Any) -> Poly:
    """The sum of body(place) over all places of an axis."""
    out: Poly = {}
    for place in places(dim):
        p = body(place)
        for name, own in dict(variables(place)).items():
            p = total(name, own, p)
        out = add(out, p)
    return out


def _fn(name: str, *args: Mapping[Monomial, Fraction]) -> Atom:
    return ("fn", name, tuple(canonical.Frozen(p.items()) for p in args))


def _exp(p: Mapping[Monomial, Fraction]) -> Poly:
    out = constant(1)
    for m, c in p.items():
        whole = c.denominator == 1
        inner = {m: Fraction(1) if whole else abs(c)}
        power = int(c) if whole else (1 if c > 0 else -1)
        out = mul(out, {((), ((_fn("exp", inner), power),)): Fraction(1)})
    return out


def _inv(p: Mapping[Monomial, Fraction]) -> Poly:
    if len(p) == 1:
        ((bound, factors), c) = next(iter(p.items()))
        sums, free = canonical.components(bound, factors)
        parts = [_inverse(a, k) for a, k in free]
        parts += [(_fn("inv", {s: Fraction(1)}), 1) for s in sums]
        return {((), _merged(parts)): 1 / c}
    common, rest = _content(p)
    inverse = (_fn("inv", rest), 1)
    return {((), _merged([inverse, *(_inverse(a, k) for a, k in common)])): Fraction(1)}


def _inverse(a: Atom, power: int) -> tuple[Atom, int]:
    if invertible(a):
        return a, -power
    return _fn("inv", {((), ((a, 1),)): Fraction(1)}), power


def invertible(a: Atom) -> bool:
    """Whether an atom is never 0: exponentials and sizes."""
    return bool(a[0] == "dim" or a[:2] == ("fn", "exp"))


def _content(p: Mapping[Monomial, Fraction]) -> tuple[list[tuple[Atom, int]], Poly]:
    """Factors common to all terms, and what is left: 1/(ab + ac) = 1/a 1/(b + c)."""
    shared: dict[Atom, int] | None = None
    for bound, factors in p:
        own = {v for v, _ in bound}
        here = {
            a: k
            for a, k in factors
            if invertible(a) and not own.intersection(canonical.free(a))
        }
        if shared is None:
            shared = here
        shared = {
            a: min(k, here[a])
            for a, k in shared.items()
            if a in here and (k > 0) == (here[a] > 0)
        }
    common = [(a, k) for a, k in (shared or {}).items() if k]
    away = [(a, -k) for a, k in common]
    rest = [((b, _merged([*f, *away])), c) for (b, f), c in p.items()]
    return common, _collected(rest) if common else dict(p)


def _merged(factors: Iterable[tuple[Atom, int]]) -> Factors:
    """Powers of atoms that are equal up to names added."""
    powers: dict[Any, tuple[Atom, int]] = {}
    for a, k in factors:
        key = canonical.atom(a)
        powers[key] = (a, powers[key][1] + k if key in powers else k)
    return tuple((a, k) for a, k in powers.values() if k)


def _refreshed(m: Monomial) -> Monomial:
    """The monomial with new names for its bound variables."""
    bound, factors = m
    if not bound:
        return m
    names = {v: f"s{next(_fresh)}" for v, _ in bound}

    def change(place: Place) -> Place:
        return ("v", names.get(place[1], place[1]), place[2])

    again = tuple((canonical.substituted(a, change), k) for a, k in factors)
    return tuple((names[v], d) for v, d in bound), again


def _contracted(
    bound: Bound, factors: Iterable[tuple[Atom, int]]
) -> tuple[Monomial, Fraction]:
    """Equalities resolved; a sum over a variable that does not occur is its size."""
    keep, work = dict(bound), list(factors)
    n = 0
    while n < len(work):
        found = _resolved(work[n][0], keep) if work[n][0][0] == "same" else None
        if found is None:
            n += 1
            continue
        if found == "never":
            return ((), ()), Fraction(0)
        parts, swap = found
        work[n : n + 1] = [(part, 1) for part in parts]
        if swap is not None:
            name, place = swap
            del keep[name]
            work = [(canonical.swapped(a, name, place), k) for a, k in work]
        n = 0
    used = {v for a, _ in work for v in canonical.free(a)}
    rest = tuple((v, d) for v, d in keep.items() if v in used)
    work += [(("dim", d), 1) for v, d in keep.items() if v not in used]
    return (rest, _merged(work)), Fraction(1)


def _resolved(same: Atom, bound: Mapping[str, str]) -> Any:
    """What an equality of places comes to: "never", parts and a swap, or None."""
    one, other = same[1:]
    if one == other:
        return [], None
    kinds = {one[0], other[0]}
    if kinds == {"k"} or (kinds == {"in"} and one[1] != other[1]):
        return "never"
    if kinds == {"in"}:
        return [("same", one[2], other[2])], None
    if kinds == {"flat"}:
        pairs = zip(one[1], other[1], strict=True)
        return [("same", x, y) for x, y in pairs], None
    for x, y in ((one, other), (other, one)):
        if x[0] == "v" and x[1] in bound and x[1] not in dict(variables(y)):
            return [], (x[1], y)
    return None


def _collected(terms: Iterable[tuple[Monomial, Fraction]]) -> Poly:
    """Monomials that are equal up to names merged, the first's names kept."""
    found: dict[Any, tuple[Monomial, Fraction]] = {}
    for m, c in terms:
        key = canonical.monomial(m)
        before = found.get(key)
        found[key] = (m, c) if before is None else (before[0], before[1] + c)
    return {m: c for m, c in found.values() if c}
