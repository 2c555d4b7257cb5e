"""Pages made from the repository's own documents, which ship with the package."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from k3.errors import ConfigError
from k3.reader import markdown, source
from k3.reader.page import Page


@dataclass(frozen=True, slots=True)
class Document:
    """A Markdown file of the repository, or of `k3/reader/documents`."""

    path: str
    file: str
    title: str


DOCUMENTS = (
    Document("open", "docs/limits.md", "Proved and open"),
    Document("benchmarks", "benchmarks/RESULTS.md", "Benchmarks"),
    Document("errata", "errata.md", "Errata"),
    Document("port", "docs/verify.md", "Check a port"),
    Document("help", "help.md", "Help"),
)


def pages() -> Iterator[Page]:
    """One page a document."""
    for each in DOCUMENTS:
        body = markdown.render(text(each.file))
        yield Page(
            path=each.path,
            title=each.title,
            body=f'<div class="document">{body}</div>',
        )


def text(file: str) -> str:
    """The Markdown of a document, from the repository or as it was installed.

    Raises: ConfigError where it is missing.
    """
    name = file.rpartition("/")[2]
    shipped = resources.files("k3.reader") / "documents" / name
    beside = source.ROOT / file
    for place in (beside, shipped) if "/" in file else (shipped,):
        if place.is_file():
            return _linked(place.read_text(encoding="utf-8"))
    raise ConfigError(
        f"the reader shows {file}: it is neither in the repository nor in the package; "
        "install k3 again"
    )


def _linked(found: str) -> str:
    """Without comments, and without links to files that are not pages."""
    found = re.sub(r"<!--.*?-->\n?", "", found, flags=re.S)
    return re.sub(r"\[([^\]]+)\]\((?!https:|#|[\w-]+\.html)[^)]*\)", r"\1", found)
