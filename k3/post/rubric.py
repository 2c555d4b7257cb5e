"""What candidates are judged by: lines with weights. Data only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k3.errors import RequestError


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One thing that makes an answer good."""

    name: str
    text: str
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rubric:
    """Lines in their order; a program scores each of them, a model reads them."""

    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        """Refuse a rubric that decides nothing."""
        names = [line.name for line in self.lines]
        if not names or len(set(names)) < len(names):
            raise RequestError(
                f"a rubric has lines of different names: got {names}; name each once"
            )
        wrong = [line.name for line in self.lines if not 0 < line.weight < float("inf")]
        if wrong:
            raise RequestError(
                f"a line's weight is above 0: got another at {', '.join(wrong)}"
            )

    def total(self, scores: Mapping[str, float]) -> float:
        """The weighted mean of scores by line.

        Raises: RequestError where a line has none, or a score has no line.
        """
        names = {line.name for line in self.lines}
        if set(scores) != names:
            raise RequestError(
                f"a rubric needs one score a line, {', '.join(sorted(names))}: got "
                f"{', '.join(sorted(scores)) or 'none'}"
            )
        weights = sum(line.weight for line in self.lines)
        return sum(line.weight * scores[line.name] for line in self.lines) / weights


def parse(text: str) -> Rubric:
    """A rubric from JSON: a list of {"name", "text", "weight"}.

    Raises: RequestError.
    """
    try:
        found: Any = json.loads(text)
        return Rubric(lines=tuple(Line(**line) for line in found))
    except (ValueError, TypeError) as error:
        raise RequestError(
            f"a rubric is a JSON list of objects with name, text and weight: {error}"
        ) from error
