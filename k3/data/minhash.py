"""MinHash signatures and their bands: which sets may be alike, without all pairs.

The share of equal entries of two signatures estimates the Jaccard similarity J of the
sets. Signatures cut into b bands of r entries share a band with chance 1-(1-J^r)^b.
Source: Broder 1997; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, 3.4.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

ENTRIES = 128
CHUNK = 4096
Signature = NDArray[np.uint64]


def numbers(items: Iterable[bytes]) -> Signature:
    """64 bits for each distinct item, sorted."""
    found = {hashlib.blake2b(item, digest_size=8).digest() for item in items}
    return np.sort(np.frombuffer(b"".join(found), np.uint64))


def signature(members: Signature, entries: int = ENTRIES) -> Signature:
    """The least of each of `entries` hashes over the members; of none, all ones."""
    seeds = _mixed(np.arange(1, entries + 1, dtype=np.uint64))
    least = np.full(entries, np.iinfo(np.uint64).max)
    for start in range(0, len(members), CHUNK):
        part = members[start : start + CHUNK, None] ^ seeds
        least = np.minimum(least, _mixed(part).min(0))
    return least


def similarity(a: Signature, b: Signature) -> float:
    """The share of equal entries, which estimates the Jaccard similarity."""
    return float((a == b).mean())


def jaccard(a: Signature, b: Signature) -> float:
    """Members in both over members in either, of sorted numbers; 1 for two empty."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    either = len(a) + len(b) - both
    return both / either if either else 1.0


def bands(threshold: float, entries: int = ENTRIES) -> int:
    """The number of bands that finds nine in ten of the pairs at the threshold.

    The fewest such, which divide the entries, so that few other pairs are looked at.
    """
    for count in range(1, entries + 1):
        if entries % count == 0 and chance(threshold, count, entries) >= 0.9:
            return count
    return entries


def chance(similar: float, count: int, entries: int = ENTRIES) -> float:
    """The chance that two sets of this similarity share one of `count` bands."""
    return 1 - (1 - similar ** (entries // count)) ** count


def keys(found: Signature, count: int) -> list[bytes]:
    """The bands of a signature, each with its place."""
    return [
        bytes([i % 256]) + band.tobytes()
        for i, band in enumerate(np.split(found, count))
    ]


def _mixed(x: Signature) -> Signature:
    """splitmix64's finalizer, on every entry."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
