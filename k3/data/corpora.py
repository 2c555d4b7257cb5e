"""Training text that every machine already has, with its held-out split.

One corpus so far: the English of the Python that runs us, `pydoc_data.topics`
and the docstrings of the standard library. It differs between Python versions,
so a corpus carries its version and its hash.
"""

import ast
import hashlib
import platform
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SKIPPED = frozenset(
    {
        "__phello__",
        "__pycache__",
        "dist-packages",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "site-packages",
        "test",
        "tests",
        "turtledemo",
    }
)
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


def stdlib() -> Corpus:
    """The running Python's topics and docstrings: about 2 MB of English.

    A paragraph that stands in several places is kept in the first one only, so that
    no held-out paragraph of 60 bytes or more is also in the training text.
    """
    documents = tuple(_without_repeats((*_topics(), *_modules())))
    return Corpus(
        name="stdlib",
        source="pydoc_data.topics and the docstrings of Python's standard library",
        licence="PSF-2.0",
        version=platform.python_version(),
        train=tuple(d for d in documents if not is_heldout(d.name)),
        heldout=tuple(d for d in documents if is_heldout(d.name)),
    )


def _topics() -> Iterator[Document]:
    from pydoc_data import topics

    for name, text in sorted(topics.topics.items()):
        yield Document(name=f"topic:{name}", text=text.strip())


def _modules() -> Iterator[Document]:
    """One document a source file: its docstrings in the order of the source."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).parts):
        parts = path.relative_to(root).parts
        if SKIPPED & set(parts) or parts[0].startswith(("config-", "_sysconfigdata")):
            continue
        text = "\n\n".join(docstrings(path.read_bytes()))
        yield Document(name="module:" + "/".join(parts), text=text)


def docstrings(source: bytes) -> list[str]:
    """Docstrings of a module, its classes and functions, as `inspect` cleans them."""
    found = []
    for node in _definitions(ast.parse(source)):
        text = ast.get_docstring(node)
        if text and text.strip():
            found.append(text.strip())
    return found


_Owner = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(tree: ast.AST) -> Iterator[_Owner]:
    """Depth first, which is the order a reader meets them in."""
    if isinstance(tree, _Owner):
        yield tree
    for child in ast.iter_child_nodes(tree):
        # Expressions are most of a tree and define nothing that has a docstring.
        if not isinstance(child, ast.expr):
            yield from _definitions(child)


def _without_repeats(documents: Iterable[Document]) -> Iterator[Document]:
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
