"""What a trained model has to beat: xz, and an order-n Kneser-Ney model of bytes.

Both read the training text and are charged for the held-out text only.
"""

import lzma
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Grams = NDArray[np.uint64]

# Five bytes of context before the one that is predicted.
ORDER = 6
# Seven bytes and the arithmetic on them fit in 64 bits.
ORDER_MAX = 7
_DICTIONARY_MIN_BYTES = 1 << 16


def xz_bytes(text: bytes) -> int:
    """Size under xz -9e with a window that holds all of the text."""
    preset = 9 | lzma.PRESET_EXTREME
    window = {
        "id": lzma.FILTER_LZMA2,
        "preset": preset,
        "dict_size": max(_DICTIONARY_MIN_BYTES, len(text)),
    }
    return len(lzma.compress(text, format=lzma.FORMAT_XZ, filters=[window]))


def xz_bits_per_byte(train: bytes, heldout: bytes) -> tuple[float, float]:
    """Held-out text after the training text (the bar), and held-out text alone."""
    after = xz_bytes(train + heldout) - xz_bytes(train)
    return 8 * after / len(heldout), 8 * xz_bytes(heldout) / len(heldout)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Order:
    """Adjusted counts of one order: its grams, and its contexts' totals and gamma."""

    grams: Grams
    counts: Counts
    contexts: Grams
    totals: Counts
    gammas: NDArray[np.float64]
    discounts: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class KneserNey:
    """Interpolated modified Kneser-Ney over bytes (Chen and Goodman 1999, section 3).

        p(w | c) = max(a(cw) - D(a(cw)), 0) / a(c.) + gamma(c) p(w | c shortened)

    The highest order counts occurrences, the lower ones the distinct bytes that come
    before. D1, D2 and D3+ come from the counts of counts. Below order 1 stands the
    uniform law, so that every byte has a probability.
    """

    orders: tuple[_Order, ...]

    @staticmethod
    def fit(text: bytes, order: int) -> "KneserNey":
        """Count the text, which begins after `order - 1` zero bytes."""
        if not 1 <= order <= ORDER_MAX:
            raise ValueError(f"order must be 1 to {ORDER_MAX}: got {order}")
        grams, counts = np.unique(_windows(text, order), return_counts=True)
        found = [_order(grams, counts)]
        for length in range(order - 1, 0, -1):
            # A gram's continuation count is how many longer grams end in it.
            tails = found[0].grams & _mask(length)
            grams, counts = np.unique(tails, return_counts=True)
            found.insert(0, _order(grams, counts))
        return KneserNey(orders=tuple(found))

    def probabilities(self, text: bytes, context: bytes = b"") -> NDArray[np.float64]:
        """p of each byte of the text, given the bytes before it."""
        order = len(self.orders)
        start = len(context[-(order - 1) :]) if order > 1 else 0
        windows = _windows(context[len(context) - start :] + text, order)[start:]
        p = np.full(len(windows), 1 / 256)
        for length, table in enumerate(self.orders, start=1):
            p = _interpolate(table, windows & _mask(length), p)
        return p

    def bits_per_byte(self, text: bytes, context: bytes = b"") -> float:
        """Mean of -log2 p over the bytes of the text."""
        return float(-np.log2(self.probabilities(text, context)).mean())


def _windows(text: bytes, order: int) -> Grams:
    """At each position, the last `order` bytes as one big-endian number."""
    padded = np.frombuffer(bytes(order - 1) + text, dtype=np.uint8).astype(np.uint64)
    size = len(text)
    grams = np.zeros(size, dtype=np.uint64)
    for offset in range(order):
        grams = (grams << np.uint64(8)) | padded[offset : offset + size]
    return grams


def _mask(length: int) -> np.uint64:
    return np.uint64((1 << (8 * length)) - 1)


def _order(grams: Grams, counts: Counts) -> _Order:
    discounts = estimate_discounts(counts)
    contexts, first = np.unique(grams >> np.uint64(8), return_index=True)
    totals = np.add.reduceat(counts, first)
    taken = discounts[np.minimum(counts, 3)]
    gammas = np.add.reduceat(taken, first) / totals
    return _Order(
        grams=grams,
        counts=counts,
        contexts=contexts,
        totals=totals,
        gammas=gammas,
        discounts=discounts,
    )


def estimate_discounts(counts: Counts) -> NDArray[np.float64]:
    """[0, D1, D2, D3+] from the counts of counts; 1/2, 1, 3/2 where they give none.

    D_i = i - (i + 1) Y n_(i+1) / n_i with Y = n_1 / (n_1 + 2 n_2).
    """
    n = np.array([(counts == i).sum() for i in range(1, 5)], dtype=np.float64)
    fixed = np.array([0, 0.5, 1.0, 1.5])
    if (n == 0).any():
        return fixed
    y = n[0] / (n[0] + 2 * n[1])
    rates = np.arange(1, 4)
    found = rates - (rates + 1) * y * n[1:] / n[:3]
    # A discount of zero would leave nothing for what was not seen.
    return np.concatenate([[0.0], found]) if (found > 0).all() else fixed


def _interpolate(
    table: _Order, grams: Grams, lower: NDArray[np.float64]
) -> NDArray[np.float64]:
    contexts = grams >> np.uint64(8)
    at, known = _find(table.contexts, contexts)
    gram_at, seen = _find(table.grams, grams)
    counts = np.where(seen, table.counts[gram_at], 0)
    kept = counts - table.discounts[np.minimum(counts, 3)]
    mixed = kept / table.totals[at] + table.gammas[at] * lower
    return np.where(known, mixed, lower)


def _find(keys: Grams, wanted: Grams) -> tuple[Counts, NDArray[np.bool_]]:
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted
