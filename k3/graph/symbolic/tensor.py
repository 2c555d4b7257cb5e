"""A tensor of symbolic size as a function of places."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from k3.graph.dims import Dim, Shape, show
from k3.graph.symbolic import normal
from k3.graph.symbolic.index import Place, canonical, position
from k3.graph.symbolic.normal import Poly, add, mul, size

Entry = Callable[[tuple[Place, ...]], Any]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as a function of places: polynomials, or places of an axis."""

    shape: Shape
    at: Entry

    def __call__(self, *places: Place) -> Any:
        """The entry at these places."""
        return self.at(places)


def leaf(name: str, shape: Shape) -> Tensor:
    """An input: its entries are atoms."""

    def at(places: tuple[Place, ...]) -> Poly:
        inner = zip(shape, places, strict=True)
        return normal.atom(("leaf", name, tuple(canonical(d, p) for d, p in inner)))

    return Tensor(shape, at)


def number(dim: Any, place: Place) -> Poly:
    """The number of a place as a polynomial."""
    out = normal.constant(0)
    for factors, count in position(dim, place).items():
        product = normal.constant(count)
        for f in factors:
            product = mul(
                product, size(f[1]) if f[0] == "d" else normal.atom(("num", f))
            )
        out = add(out, product)
    return out


def bilinear(out: Dim, table: Dim) -> Tensor:
    """The weights of a stretched table: an input that both sides share."""
    return leaf(f"bilinear {show(out)} {show(table)}", (out, table))
