"""Text that every machine has: the Python that runs us, its English and its code.

It differs between Python versions, so the version stands in the corpus.
"""

import ast
import io
import platform
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path

from k3.data.corpora.document import Corpus, Document, split, without_repeats

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
LICENCE = "PSF-2.0"


def stdlib() -> Corpus:
    """The running Python's topics and docstrings: about 2 MB of English.

    A paragraph that stands in several places is kept in the first one only, so that
    no held-out paragraph of 60 bytes or more is also in the training text.
    """
    return split(
        without_repeats((*_topics(), *_modules())),
        name="stdlib",
        source="pydoc_data.topics and the docstrings of Python's standard library",
        licence=LICENCE,
        version=platform.python_version(),
    )


def topics() -> Corpus:
    """The help texts of `pydoc_data.topics`: about half a megabyte of English."""
    return split(
        _topics(),
        name="topics",
        source="pydoc_data.topics of Python",
        licence=LICENCE,
        version=platform.python_version(),
    )


def code() -> Corpus:
    """The source files of the standard library: about 10 MB of Python."""
    documents = (
        Document(name=f"code:{name}", text=text)
        for name, path in _sources()
        if (text := _text(path.read_bytes())).strip()
    )
    return split(
        documents,
        name="python-code",
        source="the source files of Python's standard library",
        licence=LICENCE,
        version=platform.python_version(),
    )


def _topics() -> Iterator[Document]:
    from pydoc_data import topics

    for name, text in sorted(topics.topics.items()):
        yield Document(name=f"topic:{name}", text=text.strip())


def _modules() -> Iterator[Document]:
    """One document a source file: its docstrings in the order of the source."""
    for name, path in _sources():
        text = "\n\n".join(docstrings(path.read_bytes()))
        yield Document(name=f"module:{name}", text=text)


def _sources() -> Iterator[tuple[str, Path]]:
    """Name and path of each source file, in the order of their names."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).parts):
        parts = path.relative_to(root).parts
        if SKIPPED & set(parts) or parts[0].startswith(("config-", "_sysconfigdata")):
            continue
        yield "/".join(parts), path


def _text(source: bytes) -> str:
    """The source in the encoding that it declares."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding)


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
