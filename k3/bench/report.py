"""What a benchmark found: figures beside their floors, saved, and compared."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from k3 import errors

FORMAT = "k3 bench 1"
FACTOR = 1.2
"""How many times slower a run may be where nothing is said."""

TIGHT = 0.97
"""A ratio nearer to 1 than this is called the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One measured number: tok/s, s or bytes; the floor is the best possible value."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    floor: float

    @property
    def share(self) -> float:
        """1 at the floor, less when slower or larger."""
        return _gain(self.unit, self.floor, self.median)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """One run. `settings` decide what may be compared; `context` only informs."""

    settings: dict[str, Any]
    context: dict[str, Any]
    figures: tuple[Figure, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; each figure with its share of the floor."""
        rows = [asdict(each) | {"share": each.share} for each in self.figures]
        return {
            "format": FORMAT,
            "settings": self.settings,
            "context": self.context,
            "figures": rows,
        }

    def save(self, path: str | Path) -> None:
        """Write a file that `load` reads."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n")

    @staticmethod
    def load(path: str | Path) -> "Report":
        """Read a saved run. Raises: RequestError for a file that is none."""
        try:
            value = json.loads(Path(path).read_text())
            names = [field.name for field in fields(Figure)]
            rows = [Figure(**{n: row[n] for n in names}) for row in value["figures"]]
            if value["format"] != FORMAT:
                raise ValueError(value["format"])
            return Report(
                settings=value["settings"],
                context=value["context"],
                figures=tuple(rows),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise errors.RequestError(
                f"a saved run is a file that k3 bench --save wrote: {path} is none "
                f"({type(error).__name__}: {error}); save one first"
            ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Speed now over speed then, by figure; above 1 is better now."""

    ratios: dict[str, float]
    factor: float

    @property
    def slower(self) -> list[str]:
        """Figures that are worse than the saved ones by more than the factor."""
        return [name for name, ratio in self.ratios.items() if ratio < 1 / self.factor]

    @property
    def ok(self) -> bool:
        """Whether nothing is."""
        return not self.slower

    def verdict(self, name: str) -> str:
        """One word for a figure."""
        ratio = self.ratios[name]
        if name in self.slower:
            return "SLOWER"
        if TIGHT <= ratio <= 1 / TIGHT:
            return "same"
        return "better" if ratio > 1 else "within the factor"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "factor": self.factor,
            "ratios": self.ratios,
            "slower": self.slower,
        }


def compare(now: Report, then: Report, factor: float) -> Comparison:
    """Hold a run against a saved one.

    Raises: RequestError where the settings differ, where no figure is in both, and for
    a factor below 1.
    """
    check_factor(factor)
    _same_settings(now.settings, then.settings)
    before = {each.name: each for each in then.figures}
    ratios = {
        each.name: _gain(each.unit, before[each.name].median, each.median)
        for each in now.figures
        if each.name in before
    }
    if not ratios:
        raise errors.RequestError(
            "two runs are compared by the figures that both have: got none; save the "
            "run again"
        )
    return Comparison(ratios=ratios, factor=factor)


def check_factor(factor: float) -> None:
    """Raise RequestError for a factor that would forbid being equally fast."""
    if not factor >= 1:
        raise errors.RequestError(
            "--factor is how many times slower is allowed: got "
            f"{factor}; give 1 or more"
        )


def _same_settings(now: dict[str, Any], then: dict[str, Any]) -> None:
    names = sorted(now.keys() | then.keys())
    wrong = [name for name in names if now.get(name) != then.get(name)]
    if wrong:
        what = ", ".join(f"{n} {now.get(n)} and {then.get(n)}" for n in wrong)
        raise errors.RequestError(
            f"two runs are compared under the same settings: got {what}; run with the "
            "saved ones, or save anew"
        )


def _gain(unit: str, base: float, value: float) -> float:
    """How much better value is than base: speeds go up, times and bytes down."""
    return value / base if unit == "tok/s" else base / value
