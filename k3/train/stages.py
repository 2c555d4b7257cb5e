"""The context curriculum: how long the rows of a step are, and how many there are.

K3 goes through 8K, 64K, 256K and 1M tokens; a recipe has the same stages at its scale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from k3.errors import ConfigError, RequestError

SHAPE = "FRACTION:TOKENS:BATCH"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A fraction of the steps, each of `batch` rows of `tokens` tokens.

    Raises: ConfigError.
    """

    fraction: float
    tokens: int
    batch: int

    def __post_init__(self) -> None:
        if not (0 < self.fraction <= 1 and self.tokens >= 2 and self.batch >= 1):
            raise ConfigError(
                "a stage has a fraction of the steps above 0, rows of at least 2 "
                f"tokens and a batch of at least 1: got {self}"
            )

    def __str__(self) -> str:
        return f"{self.fraction:g}:{self.tokens}:{self.batch}"


def parse(text: str) -> tuple[Stage, ...]:
    """Stages from text: FRACTION:TOKENS:BATCH, several with commas between them.

    Raises: RequestError, ConfigError.
    """
    found = []
    for part in text.split(",") if text else ():
        try:
            fraction, tokens, batch = part.split(":")
            stage = float(fraction), int(tokens), int(batch)
        except ValueError:
            raise RequestError(
                f"a stage is {SHAPE}, as in 0.8:512:8: got {part!r}"
            ) from None
        found.append(Stage(fraction=stage[0], tokens=stage[1], batch=stage[2]))
    return tuple(found)


def check(stages: Sequence[Stage]) -> str:
    """What is wrong with the stages of a run, or nothing."""
    total = math.fsum(stage.fraction for stage in stages)
    if stages and not math.isclose(total, 1, abs_tol=1e-6):
        return f"fractions of stages must add up to 1: got {total:g}"
    return ""


def at(stages: Sequence[Stage], step: int, steps: int) -> Stage:
    """The stage of a 0-based step of so many; the last one also after the end."""
    done = 0.0
    for stage in stages:
        done += stage.fraction
        if step < round(done * steps):
            return stage
    return stages[-1]
