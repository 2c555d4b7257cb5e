"""The whole site: every page and every file it needs, as bytes by path."""

import html
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from k3.reader import markdown, page, row
from k3.reader.chapter import Chapter, Claim, chapters
from k3.reader.page import Page


def build(folder: Path) -> list[Path]:
    """Write the static site; returns the pages written."""
    folder.mkdir(parents=True, exist_ok=True)
    with resources.as_file(resources.files("k3.reader") / "static") as static:
        shutil.copytree(static, folder / "static", dirs_exist_ok=True)
    written = []
    for each in pages():
        path = folder / f"{each.path}.html"
        path.write_text(page.write(each), encoding="utf-8")
        written.append(path)
    return written


def pages() -> Iterator[Page]:
    """Every page of the site."""
    yield Page(path="index", title="k3 reader", body=_index())
    listed = chapters()
    for number, chapter in enumerate(listed):
        yield Page(
            path=chapter.slug,
            title=chapter.title,
            body=_chapter(chapter, number),
            description=chapter.summary,
            scripts=("widgets/index.js",),
        )


def _index() -> str:
    rows = "".join(
        f'<li><a href="{each.slug}.html">{html.escape(each.title)}</a>'
        f"<p>{markdown.inline(each.summary)}</p></li>"
        for each in chapters()
    )
    return f'<h1>Kimi K3, read and checked</h1><ol class="toc">{rows}</ol>'


def _chapter(chapter: Chapter, number: int) -> str:
    parts = "\n".join(
        row.show(part)
        if isinstance(part, Claim)
        else f'<div class="prose">{markdown.render(part.text)}</div>'
        for part in chapter.parts
    )
    section = f"§{chapter.section} of the report" if chapter.section else ""
    return f"""<header class="opening"><p class="where">{section}</p>
<h1>{html.escape(chapter.title)}</h1>
<p class="summary">{markdown.inline(chapter.summary)}</p></header>
{parts}
{_around(number)}"""


def _around(number: int) -> str:
    listed = chapters()
    links = []
    for step, word in ((-1, "Previous"), (1, "Next")):
        if 0 <= number + step < len(listed):
            other = listed[number + step]
            links.append(
                f'<a rel="{word[:4].lower()}" href="{other.slug}.html">'
                f"<span>{word}</span>{html.escape(other.title)}</a>"
            )
    return f'<nav class="around" aria-label="Chapters in turn">{"".join(links)}</nav>'
