"""Which steps are not taken: numbers that are not finite, and spikes.

Source: OLMo-core's SkipStepOptimizer, which compares with the last 128 steps and calls
six standard deviations a spike.
"""

import math
import statistics
from collections.abc import Sequence

WINDOW = 128
LEAST_RELATIVE_DEVIATION = 0.01
"""Where a loss hardly moves, so small a part of it is no spike yet."""


def refusal(loss: float, norm: float, before: "Recent", deviations: float) -> str:
    """Why a step should be skipped, or nothing."""
    if not (math.isfinite(loss) and math.isfinite(norm)):
        return f"not finite: loss {loss} and gradient norm {norm}"
    for name, value, past in (
        ("loss", loss, before.losses),
        ("gradient norm", norm, before.norms),
    ):
        limit = _limit(past, deviations)
        if value > limit:
            return f"spike: {name} {value:.4g} above {limit:.4g}"
    return ""


class Recent:
    """Losses and gradient norms of the last steps, skipped ones among them."""

    def __init__(
        self, losses: Sequence[float] = (), norms: Sequence[float] = ()
    ) -> None:
        self.losses, self.norms = list(losses), list(norms)

    def add(self, loss: float, norm: float) -> None:
        """Remember a step, and forget what is too old; what is not finite is left."""
        for past, value in ((self.losses, loss), (self.norms, norm)):
            if math.isfinite(value):
                past.append(value)
                del past[:-WINDOW]


def _limit(past: Sequence[float], deviations: float) -> float:
    """Above this a value is a spike; infinite while there is little to compare with."""
    if len(past) < WINDOW // 2:
        return math.inf
    mean = statistics.fmean(past)
    spread = statistics.pstdev(past, mean)
    return mean + deviations * max(spread, LEAST_RELATIVE_DEVIATION * abs(mean))
