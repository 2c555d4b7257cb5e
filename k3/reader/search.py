"""The search index: claims, headings, theorems and code, as small JSON for the page."""

import html
import json
import re

from k3.reader import markdown, theorems, worked
from k3.reader.chapter import Claim, chapters
from k3.reader.page import PAGES, Page


def index() -> bytes:
    """Rows of [address, title, where, words]: what `search.js` looks through."""
    rows = [*_chapters(), *_theorems()]
    rows += [[f"{path}.html", title, "page", ""] for path, title in PAGES]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def _chapters() -> list[list[str]]:
    rows = []
    for chapter in chapters():
        page = f"{chapter.slug}.html"
        rows.append([page, chapter.title, "chapter", _plain(chapter.summary)])
        for part in chapter.parts:
            if isinstance(part, Claim):
                title = _plain(part.title or part.id.replace("-", " "))
                names = " ".join((*part.code, *part.runs, *part.theorems))
                words = f"{_plain(part.text)} {names} {_plain(part.limits)}"
                rows.append([f"{page}#{part.id}", title, chapter.title, words])
                continue
            for heading in re.findall(r"^#+ (.+)$", part.text, re.M):
                anchor = markdown.slug(heading)
                rows.append([f"{page}#{anchor}", heading, chapter.title, ""])
    return rows


def _theorems() -> list[list[str]]:
    first = {
        name: f"{chapter.slug}.html#{claim.id}"
        for chapter in reversed(chapters())
        for claim in chapter.claims
        for name in claim.theorems
    }
    return [
        [first.get(name, "status.html#theorems"), name, "theorem", found["words"]]
        for name, found in theorems.receipts().items()
    ]


def _plain(text: str) -> str:
    """Words alone: no marks of Markdown, no TeX commands."""
    found = worked.PATTERN.sub("", text)
    found = re.sub(r"\\[a-zA-Z]+|[$`*_{}\\^|]", " ", found)
    return " ".join(found.split())


def page() -> Page:
    """The page of results; without JavaScript, a list of everything."""
    rows = "".join(
        f'<li><a href="{address}">{html.escape(title)}</a> '
        f"<small>{html.escape(where)}</small></li>"
        for address, title, where, _ in _chapters()
    )
    return Page(
        path="search",
        title="Search",
        body=f"""<header class="opening"><h1>Search</h1>
<p class="summary" id="count" role="status">Everything that can be found.</p></header>
<ul id="results" class="results">{rows}</ul>""",
    )
