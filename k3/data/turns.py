"""Whose turn it is: a period of rows shared out by weight, each share evenly spread."""

import math
from collections.abc import Sequence
from functools import cached_property

from k3.errors import RequestError

PERIOD = 1000
"""Rows after which the turns repeat: weights count in thousandths."""


class Turns:
    """Which of several groups a row belongs to, and its place among that group's rows.

    Raises: RequestError for a weight too small for one row of a period.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        self.counts = counts(weights)

    def of(self, number: int) -> tuple[int, int]:
        """(group, count) of a row: how many rows of the group came before."""
        period, at = divmod(number, PERIOD)
        group, turn = self._pattern[at]
        return group, period * self.counts[group] + turn

    @cached_property
    def _pattern(self) -> list[tuple[int, int]]:
        ideal = [
            ((turn + 0.5) / count, group, turn)
            for group, count in enumerate(self.counts)
            for turn in range(count)
        ]
        return [(group, turn) for _, group, turn in sorted(ideal)]


def counts(weights: Sequence[float]) -> list[int]:
    """Rows of a period for each weight, by largest remainder.

    Raises: RequestError.
    """
    exact = [PERIOD * weight / math.fsum(weights) for weight in weights]
    found = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: found[i] - exact[i])
    for place in by_remainder[: PERIOD - sum(found)]:
        found[place] += 1
    if 0 in found:
        raise RequestError(
            f"a source needs at least one row of {PERIOD}: got weights "
            f"{list(weights)}; raise the smallest"
        )
    return found
