"""What an enclosure found of one module: a value that is true or false, and prints."""

import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Ball:
    """Centre and radius, float64, of one value that a module made."""

    m: Tensor
    r: Tensor

    def __contains__(self, x: Tensor) -> bool:
        return bool((((x.double() - self.m).abs() <= self.r) | self.r.isinf()).all())


@dataclass(frozen=True, slots=True)
class Part:
    """One value of a module: how the machine's, or the equation's, lies in its ball.

    `fill` is the largest share of a radius that is used; `vacuous` entries have an
    infinite radius, and nothing is certified there.
    """

    name: str
    entries: int
    outside: int
    vacuous: int
    radius: float
    fill: float
    at: tuple[int, ...] = ()
    got: float = 0.0
    centre: float = 0.0

    def line(self) -> str:
        """One line for a person."""
        empty = f", nothing certified in {self.vacuous}" if self.vacuous else ""
        if not self.outside:
            return (
                f"{self.name}: inside (radius {self.radius:.1e}, "
                f"used {100 * self.fill:.2g} %{empty})"
            )
        where = ", ".join(map(str, self.at))
        return (
            f"{self.name}: OUTSIDE in {self.outside} of {self.entries}, at [{where}]: "
            f"got {self.got:.9g}, ball {self.centre:.9g} +- {self.radius:.1e}{empty}"
        )


@dataclass(kw_only=True, slots=True)
class ModuleReport:
    """A module from its real machine inputs: true if it computes its equation.

    `machine` has its outputs in the balls of its operations, `equation` the spec's
    values in float64 balls of the same operations, None where the spec has none.
    """

    name: str
    kind: str
    dtype: str
    machine: list[Part] = field(default_factory=list)
    equation: list[Part] | None = None
    balls: dict[str, Ball] = field(default_factory=dict)
    error: float = math.nan
    """Largest difference of the machine's output from the equation's value."""
    routes: int = 0
    certain: int = 0
    """Rows of a top-k, and those whose choice no machine of the model can change."""
    flips: list[int] = field(default_factory=list)
    """Rows whose experts are not the equation's, though the balls leave them open."""
    open: int = 0
    impossible: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Everything inside, and no decision that the balls rule out."""
        parts = [*self.machine, *(self.equation or [])]
        return not self.impossible and not any(part.outside for part in parts)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ball(self) -> Ball:
        """The ball of the output, of its first value if there are more."""
        return next(iter(self.balls.values()))

    @property
    def worst(self) -> str:
        """The first thing that is wrong, "" if nothing is."""
        if self.impossible:
            return self.impossible[0]
        named = (("machine", self.machine), ("equation", self.equation or []))
        lines = (f"{side} {p.line()}" for side, ps in named for p in ps if p.outside)
        return next(lines, "")

    def lines(self) -> list[str]:
        """For a person, without the assumptions."""
        mark = "inside" if self.ok else "OUTSIDE"
        out = [f"{mark} {self.name or self.kind} ({self.kind}, {self.dtype})"]
        out += [f"  machine   {part.line()}" for part in self.machine]
        if self.equation is None:
            out.append("  equation  not checked: the spec has none for this program")
        out += [f"  equation  {part.line()}" for part in self.equation or []]
        if not math.isnan(self.error):
            out.append(f"  true error of the output: {self.error:.2e}")
        if self.routes:
            out.append(f"  routes certain: {self.certain} of {self.routes}")
        if self.flips:
            rows = ", ".join(map(str, self.flips))
            out.append(f"  route flipped by rounding at rows {rows}: a near tie")
        if self.open:
            out.append(f"  comparisons that rounding may turn: {self.open}")
        return out + [f"  impossible: {what}" for what in self.impossible]

    def __str__(self) -> str:
        assumed = [f"  assumed: {line}" for line in self.assumptions]
        return "\n".join([*self.lines(), *assumed])

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite as text."""
        names = "name kind dtype error routes certain flips open impossible seconds"
        values = {n: getattr(self, n) for n in names.split()}
        values["machine"] = [_part(p) for p in self.machine]
        checked = self.equation is not None
        values["equation"] = (
            [_part(p) for p in self.equation or []] if checked else None
        )
        return plain({"ok": self.ok, **values, "assumptions": self.assumptions})


def plain(x: Any) -> Any:
    """Lists and dicts as JSON takes them."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [plain(v) for v in x]
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def _part(part: Part) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__dataclass_fields__}
