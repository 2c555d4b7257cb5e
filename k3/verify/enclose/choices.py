"""Choices: what a machine decided by comparing, and whether it could and had to.

The machine's run is recorded; the ball then takes the same decisions, so that it
follows the same route, and says of each whether the balls leave another one open.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from k3.verify.exact.tensor import words

COMPARES = words("lt gt le ge eq ne")
CHOICES = COMPARES | words("topk sort argsort argmax argmin isnan isinf isfinite")


def chooses(func: Any, args: Any, kwargs: Any) -> str:
    """The name of an operation that decides by values, else nothing."""
    name = func._schema.name.split("::")[1]
    if name not in CHOICES:
        return ""
    leaves = tree_leaves((args, kwargs))
    floats = (isinstance(x, Tensor) and x.is_floating_point() for x in leaves)
    return name if any(floats) else ""


@dataclass(slots=True)
class Route:
    """One top-k: by row, what was taken and by how much it is certain.

    `margin` [rows, k]: the smallest lower end of the first j + 1 taken, less the
    largest upper end of all others. Positive: no machine of the model takes another
    set. `slack`: the same with the ends exchanged; negative: no machine takes this one.
    """

    taken: Tensor
    margin: Tensor
    slack: Tensor

    def certain(self, k: int) -> Tensor:
        """Rows whose k first are certain."""
        return self.margin[:, k - 1] > 0


@dataclass(slots=True)
class Choices:
    """Decisions of one run, in order, and what the balls say of them."""

    recorded: list[tuple[str, Any]] = field(default_factory=list)
    given: bool = False
    """Whether `recorded` is a machine's, to be followed."""
    routes: list[Route] = field(default_factory=list)
    open: int = 0
    """Decisions that another machine of the model may take otherwise."""
    impossible: list[str] = field(default_factory=list)
    """Decisions that no machine of the model takes."""
    at: int = 0

    def next(self, name: str) -> Any:
        """What the machine decided here, None where nobody recorded it."""
        if not self.given:
            return None
        if self.at >= len(self.recorded) or self.recorded[self.at][0] != name:
            self.impossible.append(f"{name}: the machine went another way before")
            self.given = False
            return None
        self.at += 1
        return self.recorded[self.at - 1][1]


class Recorder(TorchDispatchMode):
    """Records the decisions of a plain run."""

    def __init__(self) -> None:
        super().__init__()
        self.choices = Choices(given=True)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, and keep a decision's result."""
        out = func(*args, **(kwargs or {}))
        name = chooses(func, args, kwargs or {})
        if name:
            kept = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, out)
            self.choices.recorded.append((name, kept))
        return out


def ranked(m: Tensor, r: Tensor, taken: Tensor, k: int) -> Route:
    """What balls [rows n] say of an order `taken` [rows n], for the first 1 .. k."""
    m, r = m.gather(-1, taken), r.gather(-1, taken)
    low, high = m - r, m + r
    k = min(k, m.shape[-1])

    def gap(first: Tensor, rest: Tensor) -> Tensor:
        worst = first.cummin(-1).values[:, :k]
        best = rest.flip(-1).cummax(-1).values.flip(-1)[:, 1 : k + 1]
        edge = torch.full((len(m), k - best.shape[-1]), -torch.inf, dtype=m.dtype)
        return worst - torch.cat([best, edge], -1)

    return Route(taken[:, :k], gap(low, high), gap(high, low))


def order_of(m: Tensor, first: Tensor) -> Tensor:
    """All columns [rows n]: those of `first` [rows k] as they are, the rest by m."""
    rest = m.scatter(-1, first, -torch.inf)
    order = rest.sort(dim=-1, descending=True, stable=True).indices
    keep = ~(order[:, :, None] == first[:, None]).any(-1)
    return torch.cat([first, order[keep].reshape(len(m), -1)], -1)
