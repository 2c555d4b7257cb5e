"""Metrics and their intervals: exact match, F1, unbiased pass@k, Wilson, bootstrap."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from k3.errors import RequestError

Z95 = 1.959964
"""Two-sided 95 % of a normal."""


def exact_match(answer: str, wanted: str) -> float:
    """1 where both are the same text, but for the space around it."""
    return float(answer.strip() == wanted.strip())


def f1(answer: str, wanted: str) -> float:
    """Harmonic mean of precision and recall over words, counted as often as they come.

    1 for two empty texts. Source: SQuAD's metric, Rajpurkar et al. 2016, section 6.1,
    here without its removal of articles and punctuation.
    """
    given, right = Counter(answer.split()), Counter(wanted.split())
    if not given and not right:
        return 1.0
    common = (given & right).total()
    return 2 * common / (given.total() + right.total())


def pass_at_k(count: int, right: int, k: int) -> float:
    """Chance that one of k draws without replacement is right: 1 - C(n-c,k)/C(n,k).

    Source: Chen et al. 2021, equation 1: the unbiased estimator.
    Raises: RequestError.
    """
    if not 0 <= right <= count or not 1 <= k <= count:
        raise RequestError(
            f"pass@k takes 1 to n of n answers, c of them right: got n={count}, "
            f"c={right}, k={k}; draw more answers"
        )
    return 1.0 - math.comb(count - right, k) / math.comb(count, k)


def wilson(right: float, count: int, z: float = Z95) -> tuple[float, float]:
    """Interval of a share of `count` yes-or-no answers.

    Never outside [0, 1], and not empty at 0 or all. Source: Wilson 1927.
    """
    if count < 1:
        return 0.0, 1.0
    share = right / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    # At 0 and at all one bound is the share itself, up to rounding.
    return max(0.0, min(share, (middle - half) / scale)), min(
        1.0, max(share, (middle + half) / scale)
    )


def bootstrap(
    values: Sequence[float],
    weights: Sequence[float] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """95 % interval of sum(values) / sum(weights) over values drawn anew.

    Without weights that of the mean.
    """
    top = np.asarray(values, np.float64)
    if not len(top):
        return -math.inf, math.inf
    below = np.ones_like(top) if weights is None else np.asarray(weights, np.float64)
    drawn = np.random.default_rng(seed).integers(len(top), size=(draws, len(top)))
    means = top[drawn].sum(1) / below[drawn].sum(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
