"""What a check found, as a value that is true or false and prints."""

import math
from dataclasses import dataclass, field

UNDECIDED = (
    "equal if sigmoid and tanh are read through exp, and sqrt as a power: an identity "
    "of these functions is used; write the reference in the program's form"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first value that differs: where, both sides, and how many entries do."""

    name: str
    at: tuple[int, ...]
    program: float
    reference: float
    bad: int
    entries: int

    @property
    def gap(self) -> float:
        """How far the shadows are apart, relative to the larger."""
        larger = max(abs(self.program), abs(self.reference), 1e-300)
        return abs(self.program - self.reference) / larger

    def __str__(self) -> str:
        if not self.entries:
            return self.name
        gap = self.gap
        apart = f"relative {gap:.1e}" if gap else "equal in float64, not exactly"
        apart = apart if gap == gap else "one is no number"
        return (
            f"{self.name}{list(self.at)}: program about {self.program:.6g}, reference "
            f"about {self.reference:.6g} ({apart}); {self.bad} of {self.entries} "
            "entries differ"
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the program and the operation that it ran."""

    file: str
    line: int
    function: str
    op: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function} ({self.op})"


@dataclass(slots=True)
class Report:
    """Whether program and reference are the same function at these shapes."""

    equal: bool = True
    difference: Difference | None = None
    problem: str = ""
    """What kept them from being compared: names or sizes of outputs."""
    place: Place | None = None
    undecided: bool = False
    """They are equal once sigmoid and tanh are read through exp, sqrt as a power."""
    seeds: int = 0
    bits: int = 0
    levels: int = 0
    orders: tuple[str, ...] = ()
    compared: int = 0
    cut_points: int = 0
    bound: float = math.nan
    degree: float = math.nan
    calls: int = 0
    margin: float = math.inf
    seconds: float = 0.0
    ops: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    readings: dict[float, str] = field(default_factory=dict)
    untested: dict[str, tuple[int, int]] | None = None
    """Entries of each weight that never reached the output, of how many."""

    def __bool__(self) -> bool:
        return self.equal

    @property
    def verdict(self) -> str:
        """EQUAL, DIFFERENT, or UNDECIDED: different but for identities."""
        if self.equal:
            return "EQUAL"
        return "UNDECIDED" if self.undecided else "DIFFERENT"

    @property
    def first(self) -> str:
        """The name of the first value that differs."""
        return self.difference.name if self.difference else self.problem

    def __str__(self) -> str:
        how = f"{self.bits} bits, {self.levels} levels, order {'+'.join(self.orders)}"
        lines = [
            f"exact: {self.verdict} ({how}, {self.seeds} seeds, {self.seconds:.1f} s)"
        ]
        if self.difference or self.problem:
            lines.append(f"  first: {self.difference or self.problem}")
        if self.place:
            lines.append(f"  from:  {self.place}")
        if self.undecided:
            lines.append(f"  {UNDECIDED}")
        lines.append(
            f"  compared {self.compared} values and {self.cut_points} cut points"
        )
        if self.equal and not math.isnan(self.bound):
            lines.append(
                f"  error bound {self.bound:.1e} (degree {self.degree:.0f}, "
                f"{self.calls} calls of random functions)"
            )
        if self.margin < math.inf:
            lines.append(f"  nearest tie of a choice by the shadow: {self.margin:.1e}")
        lines += [f"  note: {what} ({n}x)" for what, n in sorted(self.notes.items())]
        if self.readings:
            lines.append(f"  constants read: {self._constants()}")
        if self.untested is not None:
            lines.append(f"  {self._coverage()}")
        return "\n".join(lines)

    def _constants(self) -> str:
        named = [f"{c:.8g} = {r}" for c, r in self.readings.items() if r != "computed"]
        computed = len(self.readings) - len(named)
        more = [f"and {computed} computed numbers"] if computed else []
        return ", ".join(sorted(named)[:12] + more)

    def _coverage(self) -> str:
        missing = self.untested or {}
        partly = [f"{name} ({n} of {size})" for name, (n, size) in missing.items() if n]
        if not partly:
            return "every weight reached the output"
        shown = ", ".join(partly[:8]) + (", ..." if len(partly) > 8 else "")
        return f"never reached the output: {shown}"
