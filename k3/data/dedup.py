"""Documents that say what another one says: exactly, or nearly (MinHash and LSH)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from k3.data import minhash
from k3.data.corpora import Document
from k3.data.minhash import Signature
from k3.errors import RequestError

THRESHOLD = 0.8
SHINGLE_WORDS = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """Documents that stay, and pairs of names: one left out, and the one it repeats."""

    documents: tuple[Document, ...]
    repeats: tuple[tuple[str, str], ...]


def exact(documents: Sequence[Document]) -> Kept:
    """Of documents whose words are the same the first; case and spaces do not count."""
    first: dict[bytes, str] = {}
    kept, repeats = [], []
    for document in documents:
        text = " ".join(words(document.text)).encode()
        key = hashlib.sha256(text).digest()
        if key in first:
            repeats.append((document.name, first[key]))
        else:
            first[key] = document.name
            kept.append(document)
    return Kept(tuple(kept), tuple(repeats))


def near(
    documents: Sequence[Document],
    threshold: float = THRESHOLD,
    against: Sequence[Document] = (),
) -> Kept:
    """A document stays unless it is like one that stays before it, or of `against`.

    Alike are two whose sets of five consecutive words have a Jaccard similarity of
    `threshold` or more. Every pair that is left out was compared exactly; of pairs at
    the threshold one in ten may be missed, of closer ones fewer.
    Raises: RequestError.
    """
    if not 0 < threshold <= 1:
        raise RequestError(
            f"a similarity is above 0 and at most 1: got {threshold}; change it"
        )
    index = _Index(threshold)
    for document in against:
        index.like(document)
    kept, repeats = [], []
    for document in documents:
        name = index.like(document)
        if name is None:
            kept.append(document)
        else:
            repeats.append((document.name, name))
    return Kept(tuple(kept), tuple(repeats))


def words(text: str) -> list[str]:
    """Lower-case words between white space."""
    return text.casefold().split()


def shingles(text: str, count: int = SHINGLE_WORDS) -> Iterator[bytes]:
    """Runs of so many words; a shorter text is one run."""
    found = words(text)
    for start in range(max(1, len(found) - count + 1)):
        yield " ".join(found[start : start + count]).encode()


class _Index:
    """Kept documents by the bands of their signatures."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._bands = minhash.bands(threshold)
        self._buckets: dict[bytes, list[int]] = {}
        self._kept: list[tuple[str, Signature]] = []

    def like(self, document: Document) -> str | None:
        """The name of a kept document like this one; without any this one is kept."""
        members = minhash.numbers(shingles(document.text))
        keys = minhash.keys(minhash.signature(members), self._bands)
        met = {place for key in keys for place in self._buckets.get(key, ())}
        for place in sorted(met):
            name, others = self._kept[place]
            if minhash.jaccard(members, others) >= self._threshold:
                return name
        for key in keys:
            self._buckets.setdefault(key, []).append(len(self._kept))
        self._kept.append((document.name, members))
        return None
