"""The whole site: every file by path, built in memory."""

import html
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from k3.reader import (
    calculator,
    chat,
    dashboard,
    documents,
    home,
    live,
    markdown,
    page,
    row,
    search,
)
from k3.reader.chapter import Chapter, Claim, chapters
from k3.reader.page import Page

# Read by Python, or written anew below.
_INSIDE = ("math.json",)


@cache
def site() -> dict[str, bytes]:
    """Every file of the site by its path. Raises: ConfigError for a wrong chapter."""
    found = dict(_static(resources.files("k3.reader") / "static", "static/"))
    found["static/data/search.json"] = search.index()
    found["static/data/sizes.json"] = calculator.exported()
    for each in pages():
        found[f"{each.path}.html"] = page.write(each).encode()
    return found


def build(folder: Path) -> list[Path]:
    """Write the static site; returns the pages written."""
    written = []
    for path, content in site().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if path.endswith(".html"):
            written.append(target)
    return written


def pages() -> Iterator[Page]:
    """Every page of the site."""
    yield home.page()
    for number, chapter in enumerate(chapters()):
        yield _chapter(chapter, number)
    yield dashboard.page()
    yield calculator.page()
    yield from documents.pages()
    yield chat.page()
    yield search.page()


def _static(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _static(each, f"{prefix}{each.name}/")
        elif each.name not in _INSIDE:
            yield prefix + each.name, each.read_bytes()


def _chapter(chapter: Chapter, number: int) -> Page:
    """Opening, rows and prose in order, and the way on."""
    parts = "\n".join(
        row.show(part)
        if isinstance(part, Claim)
        else f'<div class="prose">{markdown.render(part.text)}</div>'
        for part in chapter.parts
    )
    section = f"Chapter {number + 1}"
    if chapter.section:
        section += f" · §{html.escape(str(chapter.section))} of the report"
    lives = _lives(chapter)
    return Page(
        path=chapter.slug,
        title=chapter.title,
        description=chapter.summary,
        scripts=(live.SCRIPT,) if lives else (),
        styles=(live.STYLE,) if lives else (),
        body=f"""<header class="opening"><p class="where">{section}</p>
<h1>{html.escape(chapter.title)}</h1>
<p class="summary">{markdown.inline(chapter.summary)}</p></header>
{parts}
{_around(number)}""",
    )


def _lives(chapter: Chapter) -> bool:
    return any(claim.widget or claim.graph for claim in chapter.claims)


def _around(number: int) -> str:
    listed = chapters()
    links = []
    for step, rel, word in ((-1, "prev", "Previous"), (1, "next", "Next")):
        if 0 <= number + step < len(listed):
            other = listed[number + step]
            links.append(
                f'<a rel="{rel}" href="{other.slug}.html">'
                f"<span>{word}</span>{html.escape(other.title)}</a>"
            )
    return f'<nav class="around" aria-label="Next chapters">{"".join(links)}</nav>'
