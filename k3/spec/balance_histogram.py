"""Quantile Balancing by histogram (§2.3.3, App. D): integer counts, one all-reduce.

A requirement r = alpha - s is the bias that would lift a score to its token's cutoff;
an expert with bias b gets the tokens with r < b. All counts here are integers.
"""

from collections.abc import Sequence
from fractions import Fraction

from k3.spec import ops
from k3.spec.ops import Array, Number


def limits(b: Array) -> tuple[Array, Array]:
    """App. D: [min b - 1, max b + 1], which holds every r if 0 <= s <= 1."""
    ranked = ops.order(b)
    return b[ranked[-1]] - 1, b[ranked[0]] + 1


def width(low: Array, high: Array, bins: int) -> Array:
    """App. D: the width of one of so many equal bins, (high - low) / B."""
    return (high - low) / bins


def bin_of(r: Array, low: Array, w: Array, bins: int) -> int:
    """The bin of r: floor((r - low) / w), the last bin also holding its upper edge."""
    place = int(ops.key((r - low) / w) // 1)
    return min(max(place, 0), bins - 1)


def counts(r: Array, low: Array, w: Array, bins: int) -> list[int]:
    """App. D: how many of the requirements [m] fall in each bin."""
    out = [0] * bins
    for i in range(len(r)):
        out[bin_of(r[i], low, w, bins)] += 1
    return out


def pool(shards: Sequence[Sequence[int]]) -> list[int]:
    """App. D: the histogram of all ranks is the sum of theirs, bin by bin."""
    return [sum(column) for column in zip(*shards, strict=True)]


def through(histogram: Sequence[int], at: int) -> int:
    """Counts of the bins up to and including one."""
    return sum(histogram[: at + 1])


def select(histogram: Sequence[int], target: Number) -> int:
    """App. D: the first bin whose cumulative count reaches ceil(target).

    0 < target <= the number of counts. The ceil(target)-th smallest r lies in it.
    """
    need = -(-Fraction(target) // 1)
    return next(i for i in range(len(histogram)) if through(histogram, i) >= need)


def estimate(histogram: Sequence[int], target: Number, low: Array, w: Array) -> Array:
    """App. D: b = low + (bin + clip((q - c) / h, 0, 1)) w, before centering.

    c counts before the bin, h in it; the target q may be a fraction. Off by at most
    one bin width from the ceil(q)-th smallest requirement.
    """
    at = select(histogram, target)
    before = through(histogram, at) - histogram[at]
    inside = (Fraction(target) - before) / histogram[at]
    part = min(max(inside, Fraction(0)), Fraction(1))
    return low + ops.lift(low, at + part) * w


def bias(s: Array, alpha: Array, b: Array, target: Number, bins: int) -> Array:
    """App. D: the estimate of Eq. 14 for every expert, before centering. [n]."""
    low, high = limits(b)
    w = width(low, high, bins)
    columns = range(s.shape[1])
    histograms = [counts(alpha - s[:, j], low, w, bins) for j in columns]
    return ops.stack([estimate(h, target, low, w) for h in histograms])
