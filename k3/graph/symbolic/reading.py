"""The reading of a text in coordinates for all sizes: entries are normal forms.

A reference is a function of a reading. `input(name, shape)` gives entries as a function
of places, `total(dim, f)` the sum of f over an axis, `let(name, shape, f)` a named
tensor; `call(name, x)` a scalar function of an entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from k3.graph.dims import Shape, parse, parse_shape
from k3.graph.symbolic import canonical, normal
from k3.graph.symbolic.index import Place, Undecided, at, backwards, variable
from k3.graph.symbolic.normal import Poly
from k3.graph.symbolic.tensor import Tensor, bilinear, leaf, number

Entries = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A polynomial with the operators of numbers."""

    poly: Poly

    def __add__(self, other: "Entry | int | Fraction") -> "Entry":
        return Entry(normal.add(self.poly, _poly(other)))

    def __sub__(self, other: "Entry | int | Fraction") -> "Entry":
        return Entry(normal.sub(self.poly, _poly(other)))

    def __mul__(self, other: "Entry | int | Fraction") -> "Entry":
        return Entry(normal.mul(self.poly, _poly(other)))

    def __truediv__(self, other: "Entry | int | Fraction") -> "Entry":
        inverse = normal.function("inv", _poly(other))
        return Entry(normal.mul(self.poly, inverse))


def _poly(x: Entry | int | Fraction) -> Poly:
    return x.poly if isinstance(x, Entry) else normal.constant(x)


@dataclass(slots=True)
class Symbols:
    """The reading for all sizes; `named` keeps what the names stand for, in order."""

    named: list[tuple[str, Tensor]] = field(default_factory=list)
    inputs: dict[str, Shape] = field(default_factory=dict)

    def input(self, name: str, shape: str) -> Entries:
        """An input's entries."""
        self.inputs[name] = parse_shape(shape)
        return _entries(leaf(name, self.inputs[name]))

    def total(self, dim: str, body: Callable[[Place], Entry]) -> Entry:
        """The sum over an axis."""
        return Entry(normal.over(parse(dim), lambda i: body(i).poly))

    def let(self, name: str, shape: str, entries: Entries) -> Entries:
        """A named tensor: recorded, and from here on an input of its own."""
        self.named.append((name, tensor(shape, entries)))
        return _entries(leaf(f"@{len(self.named)}", parse_shape(shape)))

    def size(self, dim: str) -> Entry:
        """A size as a number."""
        return Entry(normal.size(parse(dim)))

    def call(self, name: str, x: Entry) -> Entry:
        """A scalar function of an entry."""
        return Entry(normal.function(name, x.poly))

    def flat(self, *places: Place) -> Place:
        """The place of a product of axes."""
        return ("flat", places)

    def part(self, n: int, place: Place) -> Place:
        """A place in the n-th part of a sum of axes."""
        return ("in", n, place)

    def row(self, n: int) -> Place:
        """The n-th place of an axis."""
        return ("k", n)

    def lift(self, number: int) -> Entry:
        """A number as an entry."""
        return Entry(normal.constant(number))

    def factors(self, place: Place) -> tuple[Place, ...]:
        """The places of a product of axes, one a factor."""
        if place[0] != "flat":
            raise Undecided(f"a place {place[0]} is not split into factors")
        return tuple(place[1])

    def number_of(self, dim: str, place: Place) -> Entry:
        """The number of a place."""
        return Entry(number(parse(dim), place))

    def bilinear(self, out: str, table: str) -> Entries:
        """The weights of a stretched table."""
        return _entries(bilinear(parse(out), parse(table)))

    def literal(self, place: Place) -> int:
        """The number of a place of an axis of fixed size."""
        if place[0] != "k":
            raise Undecided(f"a place {place[0]} has no fixed number")
        return int(place[1])

    def back(self, dim: str, place: Place) -> Place:
        """The place of an axis counted from its end."""
        return backwards(parse(dim), place)

    def same_number(self, place: Place) -> Place:
        """The place of another axis with the same number."""
        return at({(place,): 1})

    def case(self, place: Place, *branches: Callable[[Place], Entry]) -> Entry:
        """The branch of the part that a place is in."""
        if place[0] != "in":
            raise Undecided(f"a place {place[0]} is in no part of a sum")
        branch: Callable[[Place], Entry] = branches[place[1]]
        return branch(place[2])

    def top(self, dim: str, scores: Entries, rank: Place) -> Place:
        """The place of the rank-th largest score."""
        place = variable(dim)
        body = normal.total(place[1], dim, scores(place).poly)
        return ("top", rank, canonical.poly(body.items()))


def tensor(shape: str, entries: Entries) -> Tensor:
    """Entries as a tensor of polynomials."""
    return Tensor(parse_shape(shape), lambda at: entries(*at).poly)


def _entries(made: Tensor) -> Entries:
    return lambda *places: Entry(made(*places))


@dataclass(frozen=True, slots=True)
class Within:
    """A reading in which inputs have a prefix, save those that are given."""

    inner: Any
    prefix: str
    given: Mapping[str, Entries]

    def input(self, name: str, shape: str) -> Entries:
        """A given tensor, or an input of the inner reading under the prefix."""
        if name in self.given:
            return self.given[name]
        found: Entries = self.inner.input(self.prefix + name, shape)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
