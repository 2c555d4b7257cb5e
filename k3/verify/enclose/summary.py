"""What an enclosure found of a whole run: a value that is true or false, and prints."""

import math
from dataclasses import dataclass, field
from typing import Any

from k3.verify.enclose.report import ModuleReport, plain

USELESS = (
    "a ball over the whole program is useless (infinite in the second layer of the "
    "shipped model): balls are per module, the error of the logits is measured"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Flip:
    """A token whose experts in a layer are not those of the equation.

    `margin` is how far the run's choice is from the best in the spec's biased scores,
    on the run's own path up to there: smallest taken less largest left out.
    """

    layer: int
    token: int
    run: tuple[int, ...]
    spec: tuple[int, ...]
    margin: float

    def line(self) -> str:
        """One line for a person."""
        took, best = ", ".join(map(str, self.run)), ", ".join(map(str, self.spec))
        return (
            f"route flipped: layer {self.layer}, token {self.token}: the run took "
            f"experts {took}, the equation {best} (margin {self.margin:.1e})"
        )


@dataclass(kw_only=True, slots=True)
class Report:
    """A run beside the spec over the real numbers: true if its arithmetic is right.

    A flipped route is reported and is no failure: the modules decide.
    """

    dtype: str
    tokens: int
    error: float
    """Largest difference of a logit from the equation's."""
    scale: float
    """The equation's largest logit."""
    error_on_route: float
    """The same against the equation on the run's own route; `error` if none flipped."""
    radius: float
    bits: int
    margins: dict[tuple[int, int], float] = field(default_factory=dict)
    """Margin of each route in the spec, by (layer, token)."""
    flips: list[Flip] = field(default_factory=list)
    greedy_margin: float = math.nan
    """The smallest lead of a best token over the next, over all positions."""
    greedy_at: int = 0
    greedy_flips: list[int] = field(default_factory=list)
    """Positions where the run's best token is another than the equation's."""
    modules: list[ModuleReport] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """All modules inside their balls, and the logits finite."""
        return math.isfinite(self.error) and all(m.ok for m in self.modules)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def first(self) -> ModuleReport | None:
        """The first module outside: everything before it is inside."""
        return next((m for m in self.modules if not m.ok), None)

    @property
    def verdict(self) -> str:
        """INSIDE, INSIDE with flipped routes, or OUTSIDE."""
        if not self.ok:
            return "OUTSIDE"
        if not self.flips:
            return "INSIDE"
        n = len(self.flips)
        return f"INSIDE, {n} route{'s' if n > 1 else ''} flipped"

    def lines(self) -> list[str]:
        """For a person: the result, then the assumptions."""
        relative = self.error / self.scale if self.scale else self.error
        out = [
            f"enclose: {self.verdict} ({self.dtype}, {self.tokens} tokens, "
            f"{self.seconds:.1f} s)",
            f"  true error of the logits: {self.error:.2e} (relative {relative:.1e}; "
            f"spec in Arb, {self.bits} bits, radius {self.radius:.0e})",
        ]
        if self.flips:
            out.append(
                f"  true error on the run's own route: {self.error_on_route:.2e}"
            )
        out += self._choices() + self._modules()
        return out + [f"  assumed: {line}" for line in [*self.assumptions, USELESS]]

    def _choices(self) -> list[str]:
        out = []
        if self.margins:
            (layer, token), least = min(self.margins.items(), key=lambda x: x[1])
            out.append(
                f"  nearest route: margin {least:.1e} at layer {layer}, token {token} "
                f"(of {len(self.margins)})"
            )
        out += [f"  {flip.line()}" for flip in self.flips[:12]]
        if len(self.flips) > 12:
            out.append(f"  ... and {len(self.flips) - 12} more flipped routes")
        out.append(
            f"  nearest greedy token: margin {self.greedy_margin:.1e} at token "
            f"{self.greedy_at}"
        )
        if self.greedy_flips:
            at = ", ".join(map(str, self.greedy_flips))
            out.append(f"  greedy token flipped at tokens {at}")
        return out

    def _modules(self) -> list[str]:
        inside = sum(m.ok for m in self.modules)
        out = [f"  modules inside their balls: {inside} of {len(self.modules)}"]
        rows = sum(m.routes for m in self.modules)
        if rows:
            certain = sum(m.certain for m in self.modules)
            out.append(
                f"  routes certain from a module's own inputs: {certain} of {rows}"
            )
        vacuous = sum(p.vacuous for m in self.modules for p in m.machine)
        if vacuous:
            entries = sum(p.entries for m in self.modules for p in m.machine)
            out.append(f"  infinite radius, nothing certified: {vacuous} of {entries}")
        if self.first is not None:
            out += [f"  {line}" for line in self.first.lines()]
        return out

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite as text."""
        names = (
            "dtype tokens error scale error_on_route radius bits greedy_margin "
            "greedy_at greedy_flips assumptions seconds"
        )
        values = {n: getattr(self, n) for n in names.split()}
        fields = ("layer", "token", "run", "spec", "margin")
        values["flips"] = [{f: getattr(x, f) for f in fields} for x in self.flips]
        values["margins"] = [[i, t, m] for (i, t), m in self.margins.items()]
        values["modules"] = [m.to_dict() for m in self.modules]
        return plain({"ok": self.ok, "verdict": self.verdict, **values})


def lines(report: Report) -> list[str]:
    """What a verb prints."""
    return report.lines()
