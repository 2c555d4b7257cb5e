"""Quantile Balancing of one layer (§2.3.3, App. D): exact, and by histogram.

T tokens, E experts of which each token takes k. A requirement r = alpha - s is the
bias that would lift a score to its token's cutoff, the (k+1)-th largest score + bias;
an expert should have r below its bias for q = Tk/E tokens.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def requirements(
    s: Float[Tensor, "T E"], b: Float[Tensor, " E"], k: int
) -> Float[Tensor, "T E"]:
    """Eq. 14: cutoff - score, the cutoff being the (k+1)-th largest of s + b. k < E."""
    alpha = torch.topk(s + b, k + 1, -1).values[:, -1:]
    return alpha - s


def exact(r: Float[Tensor, "T E"], k: int) -> Float[Tensor, " E"]:
    """Eq. 14: the bias that q requirements of each expert lie below, not centered.

    Where q is whole every value between the q-th and the next requirement will do, and
    their middle leaves no token at a tie. Matches: spec.balance.is_minimizer (Eq. 24).
    """
    (T, E), rising = r.shape, r.sort(0).values
    whole, rest = divmod(T * k, E)
    if rest:
        return rising[whole]
    return (rising[whole - 1] + rising[whole]) / 2


def limits(b: Float[Tensor, " E"], bins: int) -> tuple[Tensor, Tensor]:
    """App. D: min b - 1, and the width of so many equal bins up to max b + 1."""
    low = b.min() - 1
    return low, (b.max() + 1 - low) / bins


def counts(
    s: Float[Tensor, "T E"], b: Float[Tensor, " E"], k: int, bins: int
) -> Int[Tensor, "E bins"]:
    """App. D: the histogram of each expert's requirements.

    Matches: spec.balance_histogram.counts.
    """
    E = s.shape[1]
    low, width = limits(b, bins)
    at = ((requirements(s, b, k) - low) / width).floor().long().clamp(0, bins - 1)
    at += torch.arange(E, device=s.device) * bins
    return torch.bincount(at.flatten(), minlength=E * bins).view(E, bins)


def estimate(
    histogram: Int[Tensor, "E bins"], b: Float[Tensor, " E"], k: int
) -> Float[Tensor, " E"]:
    """App. D: low + (bin + clip((q - c) / h, 0, 1)) width, not centered.

    c tokens lie before the bin and h in it, the first one that ceil(q) reach. `b` is
    the bias that the histogram was counted under. Off by at most one width from the
    ceil(q)-th smallest requirement. Matches: spec.balance_histogram.bias.
    """
    E, bins = histogram.shape
    low, width = limits(b, bins)
    through = histogram.cumsum(1)
    routed = int(through[0, -1]) * k
    at = (through < -(-routed // E)).sum(1, keepdim=True)
    held = histogram.gather(1, at)
    before = through.gather(1, at) - held
    inside = ((routed - before * E).double() / (held * E)).clamp(0, 1)
    return (low + (at + inside)[:, 0] * width).to(b.dtype)
