"""Documents, and a corpus of them with its held-out split."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

HELDOUT_PERCENT = 6
DOCUMENT_MIN_BYTES = 200
PARAGRAPH_MIN_BYTES = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A name that says where the text comes from, and the text."""

    name: str
    text: str

    @property
    def num_bytes(self) -> int:
        """Length in UTF-8."""
        return len(self.text.encode())


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """Two disjoint lists of documents, and where they come from."""

    name: str
    source: str
    licence: str
    version: str
    train: tuple[Document, ...]
    heldout: tuple[Document, ...]

    @property
    def sha256(self) -> str:
        """Hash of every name and text, in order, training text first."""
        digest = hashlib.sha256()
        for document in (*self.train, *self.heldout):
            digest.update(f"{document.name}\0{document.text}\0".encode())
        return digest.hexdigest()


def split(
    documents: Iterable[Document], *, name: str, source: str, licence: str, version: str
) -> Corpus:
    """The corpus of these documents, each on the side that its name says."""
    found = tuple(documents)
    return Corpus(
        name=name,
        source=source,
        licence=licence,
        version=version,
        train=tuple(d for d in found if not is_heldout(d.name)),
        heldout=tuple(d for d in found if is_heldout(d.name)),
    )


def join(documents: Iterable[Document], separator: str = "\n\n") -> bytes:
    """All texts as one run of UTF-8, the form that the baselines read."""
    return separator.join(document.text for document in documents).encode()


def is_heldout(name: str) -> bool:
    """Whether the document of this name is kept aside: a hash of the name alone.

    The name and not the text, so that a document keeps its side when a later Python
    mends a spelling in it.
    """
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < HELDOUT_PERCENT


def without_repeats(documents: Iterable[Document]) -> Iterator[Document]:
    """Each paragraph of 60 bytes or more in the first place where it stands only.

    Documents that become shorter than 200 bytes are left out.
    """
    seen: set[str] = set()
    for document in documents:
        kept = []
        for paragraph in document.text.split("\n\n"):
            key = " ".join(paragraph.split())
            if len(key.encode()) >= PARAGRAPH_MIN_BYTES:
                if key in seen:
                    continue
                seen.add(key)
            kept.append(paragraph)
        text = "\n\n".join(kept).strip()
        if len(text.encode()) >= DOCUMENT_MIN_BYTES:
            yield Document(name=document.name, text=text)
