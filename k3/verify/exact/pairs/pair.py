"""A running function beside the equation that it claims to compute."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact import run
from k3.verify.exact.equal import equal
from k3.verify.exact.report import Report


@dataclass(frozen=True, slots=True)
class Pair:
    """What runs, what is true, and shadows for the inputs that both take."""

    name: str
    program: Any
    reference: Callable[..., Any]
    inputs: Mapping[str, Any]
    cut_points: run.Attach | Sequence[str] | None = None

    def check(self, **options: Any) -> Report:
        """Compare them: the options of `equal`."""
        given = {"cut_points": self.cut_points} | options
        return equal(self.program, self.reference, self.inputs, **given)


class Shadows:
    """Seeded float64 numbers for the inputs of a pair."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Uniform between two numbers."""
        unit = torch.rand(*shape, generator=self.generator, dtype=torch.float64)
        return low + (high - low) * unit
