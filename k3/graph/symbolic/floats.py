"""The reading of a text in coordinates at given sizes: entries are floats."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from k3.graph.dims import Sizes, parse, parse_shape, value
from k3.graph.symbolic.reading import Entries
from k3.spec.vision_position import source


@dataclass(slots=True)
class Floats:
    """The reading at given sizes and inputs; a place is a number."""

    env: Mapping[str, Any]
    sizes: Sizes

    def input(self, name: str, shape: str) -> Entries:
        """An input's entries; places of sums and products become numbers."""
        dims = parse_shape(shape)

        def entry(*places: Any) -> float:
            pairs = zip(dims, places, strict=True)
            return float(self.env[name][tuple(self.number(d, p) for d, p in pairs)])

        return entry

    def number(self, dim: Any, place: Any) -> int:
        """The number of a place."""
        if isinstance(place, int):
            return place
        kind, inner = place
        if kind == "flat":
            out = 0
            for part, each in zip(dim.parts, inner, strict=True):
                out = out * value(part, self.sizes) + self.number(part, each)
            return out
        before = sum(value(part, self.sizes) for part in dim.parts[:kind])
        return before + self.number(dim.parts[kind], inner)

    def places(self, dim: Any) -> list[Any]:
        """All places of an axis: numbers, and pairs for the parts of a sum."""
        if isinstance(dim, int | str):
            return list(range(value(dim, self.sizes)))
        if dim.op == "*":
            each = itertools.product(*map(self.places, dim.parts))
            return [("flat", at) for at in each]
        return [(n, i) for n, part in enumerate(dim.parts) for i in self.places(part)]

    def total(self, dim: str, body: Callable[[Any], float]) -> float:
        """The sum over an axis."""
        return math.fsum(body(i) for i in self.places(parse(dim)))

    def let(self, name: str, shape: str, entries: Entries) -> Entries:
        """A named tensor: its entries are kept."""
        known: dict[Any, float] = {}

        def entry(*places: Any) -> float:
            if places not in known:
                known[places] = float(entries(*places))
            return known[places]

        return entry

    def size(self, dim: str) -> float:
        """A size as a number."""
        return float(value(parse(dim), self.sizes))

    def call(self, name: str, x: float) -> float:
        """A scalar function of an entry."""
        return _FLOATS[name](x)

    def flat(self, *places: Any) -> Any:
        """The place of a product of axes."""
        return ("flat", places)

    def part(self, n: int, place: Any) -> Any:
        """A place in the n-th part of a sum of axes."""
        return (n, place)

    def row(self, n: int) -> int:
        """The n-th place of an axis."""
        return n

    def lift(self, number: int) -> float:
        """A number as an entry."""
        return float(number)

    def factors(self, place: Any) -> tuple[Any, ...]:
        """The places of a product of axes, one a factor."""
        return tuple(place[1])

    def number_of(self, dim: str, place: Any) -> float:
        """The number of a place."""
        return float(self.number(parse(dim), place))

    def bilinear(self, out: str, table: str) -> Entries:
        """The weights of a stretched table."""
        wide, high = value(parse(out), self.sizes), value(parse(table), self.sizes)

        def entry(i: Any, j: Any) -> float:
            low, top, share = source(self.number(parse(out), i), wide, high)
            return float((low == j) * (1 - share) + (top == j) * share)

        return entry

    def literal(self, place: int) -> int:
        """The number of a place of an axis of fixed size."""
        return place

    def back(self, dim: str, place: Any) -> int:
        """The place of an axis counted from its end."""
        axis = parse(dim)
        return value(axis, self.sizes) - 1 - self.number(axis, place)

    def same_number(self, place: int) -> int:
        """The place of another axis with the same number."""
        return place

    def case(self, place: Any, *branches: Callable[[Any], float]) -> float:
        """The branch of the part that a place is in."""
        branch: Callable[[Any], float] = branches[place[0]]
        return branch(place[1])

    def top(self, dim: str, scores: Entries, rank: Any) -> int:
        """The place of the rank-th largest score, equal ones by lower place."""
        order = sorted(self.places(parse(dim)), key=lambda i: (-scores(i), i))
        return int(order[rank])


def _sigmoid(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))


_FLOATS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "gelu_erf": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: (
        x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "softplus": lambda x: math.log1p(math.exp(x)),
}
