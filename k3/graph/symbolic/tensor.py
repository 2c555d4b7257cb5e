"""A tensor of symbolic size as a function of places."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from k3.graph.dims import Shape
from k3.graph.symbolic import normal
from k3.graph.symbolic.index import Place, canonical
from k3.graph.symbolic.normal import Poly

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
