"""Text in Debian packages, read where they install it or below another root."""

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from k3.data.corpora.document import Corpus, Document, split
from k3.errors import RequestError

ROOT = Path("/")
_VERSE = re.compile(r"(\w+?)(\d+):\d+ (.*)")
_VERSION = re.compile(r"\S+ \(([^)]*)\)")


def kjv(root: Path = ROOT) -> Corpus:
    """The King James Bible, a chapter a document, a verse a line: 4.4 MB."""
    program = shutil.which("bible") or shutil.which(root / "usr/bin/bible")
    data = root / "usr/lib/bible.data"
    if program is None or not data.is_file():
        raise _missing("bible-kjv bible-kjv-text", data)
    # A width in COLUMNS would break the lines.
    quiet = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    asked = [program, "-p", str(data.parent), "-f", "gen1:1-rev22:21"]
    done = subprocess.run(asked, capture_output=True, text=True, env=quiet, check=False)
    verses = [_VERSE.fullmatch(line) for line in done.stdout.splitlines()]
    if done.returncode or not verses or None in verses:
        raise RequestError(
            f"bible must print verses: {program} ended with {done.returncode} and "
            f"{len(verses)} lines; install bible-kjv again"
        )
    found = [(f"kjv:{v[1]}{v[2]}", v[3]) for v in verses if v]
    return split(
        _joined(found),
        name="kjv",
        source="King James Bible, Debian package bible-kjv-text",
        licence="public domain (UK: Crown patent)",
        version=_version(root, "bible-kjv-text"),
    )


def python_doc(root: Path = ROOT) -> Corpus:
    """Python's manual as reStructuredText: 11 MB in some 500 files."""
    found = _files(root, "usr/share/doc/python3*/html/_sources", "*.rst.txt")
    return split(
        (Document(name=f"python-doc:{name}", text=text) for name, text in found),
        name="python-doc",
        source="Python documentation, Debian package python3-doc",
        licence="PSF-2.0",
        version=_version(root, "python3*-doc"),
    )


def linux_doc(root: Path = ROOT) -> Corpus:
    """The kernel's manual as reStructuredText: 33 MB in some 6,000 files."""
    found = _files(root, "usr/share/doc/linux-doc-*/Documentation", "*.rst*")
    return split(
        (Document(name=f"linux-doc:{name}", text=text) for name, text in found),
        name="linux-doc",
        source="Linux kernel documentation, Debian package linux-doc",
        licence="GPL-2.0",
        version=_version(root, "linux-doc-*"),
    )


def wamerican(root: Path = ROOT) -> Corpus:
    """American English words, a document for each first letter: 1 MB."""
    path = root / "usr/share/dict/american-english"
    if not path.is_file():
        raise _missing("wamerican", path)
    return split(
        _by_letter("wamerican", _read(path)),
        name="wamerican",
        source="SCOWL word list, Debian package wamerican",
        licence="SCOWL (public-domain-like)",
        version=_version(root, "wamerican"),
    )


def miscfiles(root: Path = ROOT) -> Corpus:
    """Webster's second word list, and the constitution and declaration: 2.5 MB."""
    words = root / "usr/share/dict/web2"
    if not words.is_file():
        raise _missing("miscfiles", words)
    papers = [
        Document(name=f"miscfiles:{path.stem}", text=_read(path))
        for path in sorted((root / "usr/share/state").glob("us-*.gz"))
    ]
    return split(
        [*_by_letter("miscfiles", _read(words)), *papers],
        name="miscfiles",
        source="web2 and US founding papers, Debian package miscfiles",
        licence="GPL-2.0-or-later; papers public domain",
        version=_version(root, "miscfiles"),
    )


def _files(root: Path, folder: str, pattern: str) -> list[tuple[str, str]]:
    """Name and text of each file below the newest folder of a pattern."""
    folders = sorted(path for path in root.glob(folder) if path.is_dir())
    package = "python3-doc" if "python" in folder else "linux-doc"
    paths = sorted(folders[-1].rglob(pattern)) if folders else []
    if not paths:
        raise _missing(package, root / folder)
    names = [path.relative_to(folders[-1]).as_posix() for path in paths]
    texts = [_read(path) for path in paths]
    return [(n, text) for n, text in zip(names, texts, strict=True) if text.strip()]


def _read(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return content.decode("utf-8", "replace")


def _by_letter(name: str, words: str) -> Iterator[Document]:
    lines = sorted(words.split("\n"), key=lambda word: word[:1].casefold())
    for letter, group in groupby(lines, key=lambda word: word[:1].casefold()):
        if letter:
            yield Document(name=f"{name}:{letter}", text="\n".join(group))


def _joined(found: Sequence[tuple[str, str]]) -> Iterator[Document]:
    for name, group in groupby(found, key=lambda pair: pair[0]):
        yield Document(name=name, text="\n".join(verse for _, verse in group))


def _version(root: Path, package: str) -> str:
    """From the first line of the package's changelog."""
    places = sorted((root / "usr/share/doc").glob(f"{package}/changelog*.gz"))
    found = [_VERSION.match(_read(path)) for path in places]
    return next((match[1] for match in found if match), "unknown")


def _missing(packages: str, path: Path) -> RequestError:
    return RequestError(
        f"this corpus needs Debian's {packages}: {path} is not there; "
        f"apt install {packages}"
    )
