"""Packed sequences: several of them behind one another in one row of tokens."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from k3 import errors


def lengths(cu_seqlens: Tensor | Sequence[int], num_tokens: int) -> tuple[int, ...]:
    """Return the length of each sequence between the boundaries `cu_seqlens`.

    Boundaries start at 0, never fall and end at the number of tokens; equal
    neighbours are an empty sequence.
    Raises: ShapeError.
    """
    raw = cu_seqlens.tolist() if isinstance(cu_seqlens, Tensor) else cu_seqlens
    bounds = list(raw) if isinstance(raw, Sequence) else [raw]
    whole = all(isinstance(b, int) or hasattr(b, "__index__") for b in bounds)
    falls = whole and any(b < a for a, b in pairwise(bounds))
    ends = len(bounds) > 1 and bounds[0] == 0 and bounds[-1] == num_tokens
    if not whole or falls or not ends:
        raise errors.ShapeError(
            "cu_seqlens must start at 0, never fall and end at the number of tokens "
            f"({num_tokens}): got {bounds}; pass the cumulative lengths"
        )
    return tuple(int(b - a) for a, b in pairwise(bounds))


def same(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two tuples of lengths are equal.

    Compared one by one, so that torch.compile need not fix what they are.
    """
    return len(a) == len(b) and all(x == y for x, y in zip(a, b, strict=True))


def level(lens: tuple[int, ...]) -> bool:
    """Whether there are sequences, all of one length, compared as in `same`."""
    return bool(lens) and all(n == lens[0] for n in lens)
