"""What a comparison found, tensor by tensor in the order of the computation."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One tensor: its largest error over the largest value that was expected.

    `at` is where the error is largest, with both values there. Whole numbers are
    compared for equality: the error is the share that differs.
    """

    name: str
    error: float
    tolerance: float
    at: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    note: str = ""

    @property
    def ok(self) -> bool:
        """Within tolerance; NaN never is."""
        return self.error <= self.tolerance

    def line(self) -> str:
        """One line for a person."""
        mark = "ok  " if self.ok else "DIFF"
        text = (
            f"{mark} {self.name:26} {self.error:9.2e}  (at most {self.tolerance:.0e})"
        )
        if self.ok:
            return text
        if self.note:
            return f"{text}  {self.note}"
        where = ", ".join(map(str, self.at))
        return f"{text}  at [{where}]: got {self.got:.7g}, expected {self.expected:.7g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All entries, and the keys of the file that nothing was compared with."""

    entries: list[Entry] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every tensor is within its tolerance."""
        return all(entry.ok for entry in self.entries)

    @property
    def first(self) -> Entry | None:
        """The first tensor that differs: everything before it agrees."""
        return next((entry for entry in self.entries if not entry.ok), None)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite as text."""
        first = self.first
        return {
            "ok": self.ok,
            "first": first.name if first else None,
            "unknown": self.unknown,
            "entries": [_plain(entry) for entry in self.entries],
        }


def measure(name: str, got: Array, expected: Array, tolerance: float) -> Entry:
    """Compare one tensor with what was expected of it."""
    if got.shape != expected.shape:
        note = f"shapes differ: got {got.shape}, expected {expected.shape}"
        return Entry(name=name, error=np.inf, tolerance=tolerance, note=note)
    if got.size == 0:
        return Entry(name=name, error=0.0, tolerance=tolerance)
    if expected.dtype.kind in "iu":
        return _measure_whole(name, got, expected)
    wide, want = got.astype(np.float64), expected.astype(np.float64)
    gap = np.abs(wide - want)
    gap[np.isnan(gap)] = np.inf
    gap[wide == want] = 0.0
    at = np.unravel_index(int(gap.argmax()), gap.shape)
    largest = float(np.abs(want).max())
    error = float(gap[at]) / largest if largest > 0 else float(gap[at])
    return Entry(
        name=name,
        error=np.inf if np.isnan(error) else error,
        tolerance=tolerance,
        at=tuple(int(i) for i in at),
        got=float(wide[at]),
        expected=float(want[at]),
    )


def _measure_whole(name: str, got: Array, expected: Array) -> Entry:
    differs = got != expected
    at = np.unravel_index(int(differs.argmax()), differs.shape)
    return Entry(
        name=name,
        error=float(differs.mean()),
        tolerance=0.0,
        at=tuple(int(i) for i in at),
        got=float(got[at]),
        expected=float(expected[at]),
    )


def _plain(entry: Entry) -> dict[str, Any]:
    values = asdict(entry) | {"ok": entry.ok, "at": list(entry.at)}
    return {
        key: str(value)
        if isinstance(value, float) and not np.isfinite(value)
        else value
        for key, value in values.items()
    }
