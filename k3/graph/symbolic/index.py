"""Places on axes of symbolic size, as nested tuples.

    ("v", name, dim)        a variable that ranges over a named dimension
    ("k", n)                the n-th place
    ("in", part, place)     a place within one part of a sum
    ("flat", (place, ...))  a place of a product, one place a factor
    ("at", position)        a place of a sum by its number, see `position`
    ("top", rank, scores)   the place of the rank-th largest of some scores

Sums over axes are split until a variable ranges over a name alone.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from k3.graph.dims import Compound, Dim, Shape, atoms

Place = Any
# Numbers of places: sorted factors (places and ("d", name)) to a coefficient.
Position = tuple[tuple[tuple[Any, ...], int], ...]

_fresh = itertools.count()


class Undecided(Exception):
    """The normal form cannot follow this step; says why."""


def variable(dim: Dim) -> Place:
    """A new variable over a named dimension."""
    assert isinstance(dim, str), dim
    return ("v", f"i{next(_fresh)}", dim)


def places(dim: Dim) -> Iterator[Place]:
    """Generic places that cover an axis: one a part, a factor's variable each."""
    if isinstance(dim, int):
        yield from (("k", n) for n in range(dim))
    elif isinstance(dim, str):
        yield variable(dim)
    elif dim.op == "+":
        for n, part in enumerate(dim.parts):
            yield from (("in", n, place) for place in places(part))
    else:
        for each in itertools.product(*map(list, map(places, dim.parts))):
            yield ("flat", each)


def variables(place: Any) -> Iterator[tuple[str, str]]:
    """The variables of a place with their dimensions; scores are not looked into."""
    if isinstance(place, tuple):
        if place and place[0] == "v":
            yield place[1], place[2]
        elif place and place[0] == "top":
            yield from variables(place[1])
        else:
            for part in place:
                yield from variables(part)


def position(dim: Dim, place: Place) -> dict[tuple[Any, ...], int]:
    """The number of a place, as a polynomial in places and sizes."""
    match place:
        case ("k", n):
            return {(): n} if n else {}
        case ("at", terms):
            return dict(terms)
        case ("in", n, inner):
            assert isinstance(dim, Compound)
            out = position(dim.parts[n], inner)
            for part in dim.parts[:n]:
                out = _plus(out, size(part))
            return out
        case ("flat", inner):
            assert isinstance(dim, Compound)
            out = {}
            for part, each in zip(dim.parts, inner, strict=True):
                out = _plus(_times(out, size(part)), position(part, each))
            return out
    return {(place,): 1}


def size(dim: Dim) -> dict[tuple[Any, ...], int]:
    """A dimension as a polynomial in sizes."""
    if isinstance(dim, int):
        return {(): dim} if dim else {}
    if isinstance(dim, str):
        return {(("d", dim),): 1}
    out: dict[tuple[Any, ...], int] = {} if dim.op == "+" else {(): 1}
    for part in dim.parts:
        out = (_plus if dim.op == "+" else _times)(out, size(part))
    return out


def _plus(a: Mapping[Any, int], b: Mapping[Any, int], sign: int = 1) -> dict[Any, int]:
    out = dict(a)
    for factors, count in b.items():
        out[factors] = out.get(factors, 0) + sign * count
    return {factors: count for factors, count in out.items() if count}


def _times(a: Mapping[Any, int], b: Mapping[Any, int]) -> dict[Any, int]:
    out: dict[Any, int] = {}
    for one, m in a.items():
        for other, n in b.items():
            factors = tuple(sorted(one + other, key=repr))
            out[factors] = out.get(factors, 0) + m * n
    return out


def at(number: Mapping[tuple[Any, ...], int]) -> Place:
    """The place with this number; a variable's own number gives the variable."""
    match list(number.items()):
        case [((factor,), 1)] if factor[0] != "d":
            return factor
    return ("at", tuple(sorted(number.items(), key=repr)))


def backwards(dim: Dim, place: Place) -> Place:
    """The place of a flipped axis: size - 1 - number."""
    last = _plus(size(dim), {(): 1}, -1)
    if isinstance(dim, int) and place[0] == "k":
        return ("k", dim - 1 - place[1])
    return at(_plus(last, position(dim, place), -1))


def shifted(dim: Dim, start: Dim, part: Dim, place: Place) -> Place:
    """The place on an axis of a place within rows start to start + part."""
    if isinstance(dim, int) and isinstance(start, int) and place[0] == "k":
        return ("k", start + place[1])
    parts = dim.parts if isinstance(dim, Compound) and dim.op == "+" else (dim,)
    inner = part.parts if isinstance(part, Compound) and part.op == "+" else (part,)
    for first in range(len(parts) - len(inner) + 1):
        before = Compound("+", parts[:first]) if first else 0
        same = (
            size(before) == size(start) and parts[first : first + len(inner)] == inner
        )
        if same and len(parts) > 1:
            if len(inner) == 1:
                return ("in", first, place)
            if place[0] == "in":
                return ("in", first + place[1], place[2])
    if size(start) == {} and dim == part:
        return place
    return at(_plus(size(start), position(part, place)))


def regroup(old: Shape, new: Shape, places: Sequence[Place]) -> list[Place]:
    """Places on a reshaped tensor as places on the tensor before. new to old."""
    flat: list[tuple[Dim, Place]] = []
    for dim, place in zip(new, places, strict=True):
        flat.extend(_factors(dim, place))
    pool = _merged(flat)
    out = []
    for dim in old:
        inner = dim.parts if isinstance(dim, Compound) and dim.op == "*" else (dim,)
        taken = [_take(pool, factor) for factor in inner if factor != 1]
        single = taken[0] if len(taken) == 1 else ("flat", tuple(taken))
        out.append(single if taken else ("k", 0))
    return out


def _factors(dim: Dim, place: Place) -> list[tuple[Dim, Place]]:
    if dim == 1:
        return []
    if isinstance(dim, Compound) and dim.op == "*":
        if place[0] != "flat":
            raise Undecided(f"a place {place[0]} of {dim} is not split into factors")
        return [*zip(dim.parts, place[1], strict=True)]
    return [(dim, place)]


def _merged(flat: Sequence[tuple[Dim, Place]]) -> list[tuple[Dim, Place]]:
    """Neighbouring integer factors as one, the last first."""
    out: list[tuple[Dim, Place]] = []
    for dim, place in flat:
        if isinstance(dim, int) and out and isinstance(out[-1][0], int):
            count, before = out.pop()
            assert isinstance(count, int)
            out.append((count * dim, ("k", before[1] * dim + place[1])))
        else:
            out.append((dim, place))
    return out[::-1]


def _take(pool: list[tuple[Dim, Place]], factor: Dim) -> Place:
    """The next factor's place; integers are split off in front."""
    dim, place = pool.pop()
    if dim == factor:
        return place
    assert isinstance(dim, int), (dim, factor, atoms)
    assert isinstance(factor, int), (dim, factor)
    rest = dim // factor
    pool.append((rest, ("k", place[1] % rest)))
    return ("k", place[1] // rest)


def canonical(dim: Dim, place: Place) -> Place:
    """One form for each place of an input: sums by number, products by factor."""
    if isinstance(dim, Compound) and dim.op == "*" and place[0] == "flat":
        inner = zip(dim.parts, place[1], strict=True)
        return ("flat", tuple(canonical(d, p) for d, p in inner))
    if isinstance(dim, Compound) and place[0] != "v":
        return at(position(dim, place))
    return place


def renamed(place: Any, change: Callable[[tuple[Any, ...]], Any]) -> Any:
    """The place with its variables changed, scores left as they are."""
    if not isinstance(place, tuple) or not place:
        return place
    if place[0] == "v":
        return change(place)
    if place[0] == "at":
        return at(_substituted(place[1], change))
    if place[0] == "top":
        return ("top", renamed(place[1], change), place[2])
    return tuple(renamed(part, change) for part in place)


def _substituted(
    terms: Position, change: Callable[[tuple[Any, ...]], Any]
) -> dict[tuple[Any, ...], int]:
    """A position with its variables replaced by places of the same dimension."""
    out: dict[tuple[Any, ...], int] = {}
    for factors, count in terms:
        product: dict[tuple[Any, ...], int] = {(): count}
        for factor in factors:
            changed = renamed(factor, change)
            same = factor[0] != "v" or changed[0] not in ("k", "in", "flat", "at")
            number = {(changed,): 1} if same else position(factor[2], changed)
            product = _times(product, number)
        out = _plus(out, product)
    return out
