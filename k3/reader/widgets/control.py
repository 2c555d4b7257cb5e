"""What a reader sets in a widget: its range, what it takes, and random values of it."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from k3.errors import RequestError

Kind = Literal["number", "integer", "size", "array", "flags", "choice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """What a reader sets. A size is a dimension of the graph, a choice picks a graph.

    array and flags are lists, or lists of lists, of one shape; flags hold 0 and 1. With
    `most` an array is a list of `least` to `most` numbers, which a reader adds and
    removes.
    """

    name: str
    value: Any
    label: str
    kind: Kind = "number"
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    options: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    least: int = 0
    most: int = 0


def accept(control: Control, value: Any) -> Any:
    """The value, if it is one of this control; RequestError says what fails."""
    if control.kind == "choice":
        if value in control.options:
            return value
        wanted = f"one of {', '.join(control.options)}"
    elif control.most and isinstance(value, list) and not _fits(control, value):
        wanted = f"{control.least} to {control.most} numbers"
    elif not _same_shape(value, _like(control, value)):
        wanted = f"numbers of the shape of {json.dumps(control.value)}"
    elif all(control.low <= x <= control.high for x in _flat(value)):
        return value
    else:
        wanted = f"between {control.low:g} and {control.high:g}"
    came = json.dumps(value)[:80] if _shown(value) else type(value).__name__
    raise RequestError(f"{control.name} must be {wanted}: got {came}; change it")


def _fits(control: Control, value: Sequence[Any]) -> bool:
    return control.least <= len(value) <= control.most


def _like(control: Control, value: Any) -> Any:
    """What a value must look like: a list that may grow is as long as it is."""
    free = control.most and isinstance(value, list)
    return control.value[:1] * len(value) if free else control.value


def _shown(value: Any) -> bool:
    return isinstance(value, str | int | float | list | None)


def _same_shape(value: Any, like: Any) -> bool:
    if isinstance(like, list):
        return (
            isinstance(value, list)
            and len(value) == len(like)
            and all(_same_shape(v, item) for v, item in zip(value, like, strict=True))
        )
    whole = isinstance(like, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return False
    return math.isfinite(value)


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def plain(value: Any) -> Any:
    """Arrays and numpy scalars as lists and numbers."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, int):
        return int(value)
    # JSON has no NaN: what is not defined is null.
    return float(value) if math.isfinite(value) else None


def export(control: Control) -> dict[str, Any]:
    """What the page gets of it."""
    fixed = () if control.most else ("least", "most")
    found = asdict(control).items()
    return {k: v for k, v in found if v != () and k not in fixed}


def draw(control: Control, rng: np.random.Generator, on_step: bool) -> Any:
    """A random value, on the steps of the control or between them."""
    if control.kind == "choice":
        return str(rng.choice(control.options))
    shape = np.shape(control.value)
    if control.most:
        shape = (int(rng.integers(control.least, control.most + 1)),)
    whole = all(isinstance(x, int) for x in _flat(control.value))
    if whole:
        step = max(1, round(control.step))
        steps = round((control.high - control.low) / step)
        return plain(round(control.low) + step * rng.integers(0, steps + 1, size=shape))
    span = control.high - control.low
    if on_step:
        count = round(span / control.step)
        values = control.low + control.step * rng.integers(0, count + 1, size=shape)
        values = np.minimum(values, control.high)
    else:
        values = control.low + span * rng.random(size=shape)
    return plain(values)
