"""An operator of K3: what runs, what is true, its inputs, and how it is misread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from k3.errors import ShapeError
from k3.verify.exact.pairs.pair import Shadows

Values = dict[str, Any]
# The largest error over the largest value that a right function stays below.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 2e-2}


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to misread an operator: what makes a function with this mistake right.

    `before` changes the inputs that are passed, `after` the outputs that come back.
    """

    words: str
    before: Callable[[Values], Values] = dict
    after: Callable[[Values], Values] = dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator; all its functions take the inputs of `draw` by name.

    `program` is ours on tensors, `reference` the equation on any carrier of spec.ops.
    `layouts` gives the axes of every input and output in words. `tokens` are inputs
    and outputs with time and heads as their first two axes.
    """

    name: str
    says: str
    program: Callable[..., Any]
    reference: Callable[..., Any]
    draw: Callable[[Shadows], Values]
    layouts: Mapping[str, str]
    outputs: tuple[str, ...]
    exact: bool = True
    tolerance: Mapping[torch.dtype, float] | None = None
    readings: tuple[Reading, ...] = ()

    def inputs(self, seed: int = 0) -> Values:
        """Float64 tensors, integers and constants by name, the same for a seed."""
        return self.draw(Shadows(seed))

    def named(self, result: Any) -> Values:
        """The outputs of a function by name: one value, a sequence, or a mapping.

        Raises: ShapeError for another number of outputs or other names.
        """
        if result is None:
            raise ShapeError(self._wrong("nothing"))
        if isinstance(result, Mapping):
            found = dict(result)
        elif isinstance(result, list | tuple):
            found = dict(zip(self.outputs, result, strict=False))
            if len(result) != len(self.outputs):
                raise ShapeError(self._wrong(f"{len(result)} values"))
        else:
            found = {self.outputs[0]: result}
        if set(found) != set(self.outputs):
            raise ShapeError(self._wrong(", ".join(map(str, found)) or "nothing"))
        return {name: found[name] for name in self.outputs}

    def _wrong(self, got: str) -> str:
        wanted = " and ".join(self.outputs)
        return f"{self.name} returns {wanted}: got {got}; return them in this order"

    def expected(self, inputs: Values) -> dict[str, np.ndarray[Any, Any]]:
        """The equation's outputs in float64."""
        given = {n: _array(x) for n, x in inputs.items()}
        with np.errstate(all="ignore"):
            found = self.named(self.reference(**given))
        return {n: np.asarray(x) for n, x in found.items()}

    def bound(self, dtype: torch.dtype) -> float:
        """The error that a right function of this dtype stays below."""
        own = self.tolerance or {}
        return own.get(dtype, TOLERANCE[dtype])


def _array(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {n: _array(y) for n, y in x.items()}
    if not isinstance(x, Tensor):
        return x
    wide = x.double() if x.is_floating_point() else x
    return wide.detach().cpu().numpy()


def rounded(inputs: Values, dtype: torch.dtype) -> Values:
    """The inputs in a dtype; integers and constants as they are."""
    return {n: _rounded(x, dtype) for n, x in inputs.items()}


def _rounded(x: Any, dtype: torch.dtype) -> Any:
    if isinstance(x, Mapping):
        return rounded(dict(x), dtype)
    floats = isinstance(x, Tensor) and x.is_floating_point()
    return x.to(dtype) if floats else x


def swapped(*names: str, axes: tuple[int, int]) -> Callable[[Values], Values]:
    """Exchange two axes of the named values."""

    def change(values: Values) -> Values:
        moved = {n: values[n].transpose(*axes).contiguous() for n in names}
        return values | moved

    return change


def changed(**by_name: Callable[[Any], Any]) -> Callable[[Values], Values]:
    """Apply a function to each named value."""

    def change(values: Values) -> Values:
        return values | {n: f(values[n]) for n, f in by_name.items()}

    return change
