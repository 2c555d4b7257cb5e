"""What was found of a function: its errors, whether they are allowed, and why."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from k3.verify.exact.report import Report

Array = NDArray[Any]
SHOWN = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float64: "fp64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """One output: largest errors, absolute, over the largest value, and in ULPs.

    `first` is the first index beyond the tolerance in row-major order, with both
    values there. `note` says what kept the output from being compared.
    """

    name: str
    absolute: float = 0.0
    relative: float = 0.0
    ulps: float = 0.0
    first: tuple[int, ...] | None = None
    got: float = 0.0
    expected: float = 0.0
    tolerance: float = 0.0
    note: str = ""

    @property
    def ok(self) -> bool:
        """Within the tolerance; what could not be compared never is."""
        return not self.note and self.relative <= self.tolerance

    def line(self) -> str:
        """One line for a person."""
        mark = "ok  " if self.ok else "DIFF"
        if self.note:
            return f"{mark} {self.name:10} {self.note}"
        text = (
            f"{mark} {self.name:10} abs {self.absolute:.2e}  rel {self.relative:.2e}  "
            f"{self.ulps:.3g} ULP  (rel at most {self.tolerance:.0e})"
        )
        if self.first is None:
            return text
        where = ", ".join(map(str, self.first))
        both = f"got {self.got:.7g}, expected {self.expected:.7g}"
        return f"{text}\n     first at [{where}]: {both}"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """A function against an operator, in one dtype, and exactly where that was asked.

    `passes` is the verdict at the tolerances of fp32 and bf16, whatever the dtype of
    the run. `diagnosis` is the change of the call under which the function is right.
    """

    operator: str
    dtype: str
    seed: int
    outputs: list[Errors] = field(default_factory=list)
    passes: dict[str, bool] = field(default_factory=dict)
    problem: str = ""
    diagnosis: str = ""
    exact: Report | None = None

    @property
    def ok(self) -> bool:
        """Every output is within tolerance, and equal where that was decided."""
        exactly = self.exact is None or bool(self.exact)
        return not self.problem and exactly and all(e.ok for e in self.outputs)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{self.operator} in {self.dtype}, seed {self.seed}"]
        if self.problem:
            lines.append(f"the function failed: {self.problem}")
        lines += [e.line() for e in self.outputs]
        if self.passes:
            said = [f"{n} {'yes' if ok else 'no'}" for n, ok in self.passes.items()]
            lines.append(f"within the tolerance of {', of '.join(said)}")
        if self.diagnosis:
            lines.append(f"equal after {self.diagnosis}")
        if self.exact is not None:
            lines.append(str(self.exact))
        lines.append("agrees" if self.ok else "differs")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite as text."""
        return {
            "ok": self.ok,
            "operator": self.operator,
            "dtype": self.dtype,
            "seed": self.seed,
            "problem": self.problem,
            "diagnosis": self.diagnosis,
            "passes": self.passes,
            "exact": None if self.exact is None else self.exact.verdict,
            "outputs": [_plain(e) for e in self.outputs],
        }


def _plain(errors: Errors) -> dict[str, Any]:
    values = asdict(errors) | {"ok": errors.ok}
    return {
        key: str(x) if isinstance(x, float) and not np.isfinite(x) else x
        for key, x in values.items()
    }


def measure(
    name: str, got: Any, expected: Array, dtype: torch.dtype, tolerance: float
) -> Errors:
    """The errors of one output, counted in units of the last place of the dtype."""
    try:
        values = _floats(got)
    except (TypeError, ValueError, RuntimeError) as error:
        return Errors(name=name, tolerance=tolerance, note=f"is no array: {error}")
    if values.shape != expected.shape:
        shapes = f"has shape {list(values.shape)}, expected {list(expected.shape)}"
        return Errors(name=name, tolerance=tolerance, note=shapes)
    want = expected.astype(np.float64)
    gap = np.abs(values - want)
    gap[values == want] = 0.0
    gap[np.isnan(gap)] = np.inf
    largest = float(np.abs(want).max(initial=0.0)) or 1.0
    bad = np.flatnonzero(gap.reshape(-1) > tolerance * largest)
    at = np.unravel_index(int(bad[0]), gap.shape) if bad.size else None
    return Errors(
        name=name,
        absolute=float(gap.max(initial=0.0)),
        relative=float(gap.max(initial=0.0)) / largest,
        ulps=float((gap / _last_place(want, dtype)).max(initial=0.0)),
        first=None if at is None else tuple(int(i) for i in at),
        got=0.0 if at is None else float(values[at]),
        expected=0.0 if at is None else float(want[at]),
        tolerance=tolerance,
    )


def _floats(x: Any) -> Array:
    if isinstance(x, torch.Tensor):
        return np.asarray(x.detach().cpu().double().numpy())
    return np.asarray(x, dtype=np.float64)


def _last_place(want: Array, dtype: torch.dtype) -> Array:
    """The distance of neighbouring numbers of the dtype at each value."""
    info = torch.finfo(dtype)
    size = np.maximum(np.abs(want), info.tiny)
    return np.asarray(info.eps * np.exp2(np.floor(np.log2(size))))
