"""`k3 read --check`: every name exists, every piece of evidence is there and fresh."""

from collections.abc import Iterator

from k3.reader import formulas, markdown
from k3.reader.chapter import Claim, chapters


def texts() -> Iterator[tuple[str, str]]:
    """(where, Markdown) of every text of every chapter."""
    for chapter in chapters():
        yield chapter.file, chapter.summary
        for part in chapter.parts:
            if isinstance(part, Claim):
                where = f"{chapter.file}, claim {part.id}"
                yield from ((where, t) for t in (part.title, part.text, part.limits))
            else:
                yield chapter.file, part.text


def formulas_used() -> Iterator[tuple[str, bool]]:
    """(TeX, whether it stands alone) of every formula of every chapter."""
    for _, text in texts():
        yield from markdown.maths(text)


def unset() -> Iterator[str]:
    """A sentence for each formula that the cache lacks."""
    known = formulas.typeset()
    for where, text in texts():
        for tex, display in markdown.maths(text):
            if formulas.key(tex, display=display) not in known:
                yield (
                    f"{where}: the formula {tex.strip()[:60]!r} is not typeset; run "
                    f"{formulas.REBUILD}"
                )
