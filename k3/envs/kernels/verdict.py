"""What a kernel is worth: nothing if it is wrong, else by its speed."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TOLERANCE = 2e-5
"""Largest error beside float64, as a share of the row's largest value.

fp32 sums of 4,096 terms in any order, and a product or an exp on top, stay below a
tenth of it; one rounding to fp16 (2.4e-4), TF32 or bf16 (2e-3) is ten times above.
"""
NARROW_ERROR = 2e-2
"""An error up to here, of random values, is called one of precision."""
LEAST = 1.15
"""Times the reference's speed: up to here there are none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Accusations, an error, and the seconds of each call by what was called.

    From `share` of the speed of a copy on the marks are full.
    """

    accused: tuple[str, ...] = ()
    error: str = ""
    error_relative: float = 0.0
    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    share: float = 1.0

    @property
    def score(self) -> float:
        """0 if anything is wrong, else the marks of its medians."""
        if self.accused or self.error or not self.seconds:
            return 0.0
        medians = {k: statistics.median(v) for k, v in self.seconds.items()}
        return marks(**medians, share=self.share)

    @property
    def text(self) -> str:
        """What is told to who wrote it."""
        if self.error:
            return f"Error: {self.error}"
        if self.accused:
            return f"Wrong: {', '.join(self.accused)}."
        ms = {k: 1e3 * statistics.median(v) for k, v in self.seconds.items()}
        return (
            f"Right, largest error {self.error_relative:.1e}. {ms['kernel']:.2f} ms; "
            f"the reference {ms['plain']:.2f} ms, a copy of the same bytes "
            f"{ms['copy']:.2f} ms. Score {self.score:.2f}."
        )


def marks(kernel: float, plain: float, copy: float, share: float) -> float:
    """From 0 at 1.15 times the reference's speed to 1 at a share of the roofline.

    Even in the logarithm of the speed between them, so that it never falls with it.
    Where that is less than 1.5 times the reference's speed, it is that.
    """
    none, full = plain / LEAST, min(copy / share, plain / 1.5)
    return min(1.0, max(0.0, math.log(none / kernel) / math.log(none / full)))
