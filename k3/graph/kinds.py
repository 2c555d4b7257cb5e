"""What a node holds: shape, kind, and for integers the axis that they index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from k3.graph.dims import Dim, Shape, show, show_shape

Dtype = Literal["real", "int", "bool"]
Attrs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Type:
    """Shape and kind of a node; an integer that indexes an axis knows the axis."""

    shape: Shape
    dtype: Dtype = "real"
    domain: Dim | None = None

    def __str__(self) -> str:
        kind = "" if self.dtype == "real" else f" {self.dtype}"
        below = "" if self.domain is None else f" below {show(self.domain)}"
        return show_shape(self.shape) + kind + below


class Refusal(Exception):
    """Operands that do not fit: the rule they break, and what to do."""


Rule = Callable[[Sequence[Type], Attrs], Type]


def need(holds: bool, rule: str, advice: str) -> None:
    """Refuse the operands unless the rule holds."""
    if not holds:
        raise Refusal(rule, advice)


def real(*args: Type) -> None:
    """Refuse integers and booleans."""
    need(
        all(a.dtype == "real" for a in args),
        "operands must be real",
        "use count, one_hot or gather on integers",
    )


def has_axis(a: Type, axis: int) -> None:
    """Refuse an axis that the operand has not."""
    need(
        0 <= axis < len(a.shape),
        f"axis {axis} must be one of the operand's",
        f"it has {len(a.shape)} axes, counted from 0",
    )
