"""The frame of every page: head, navigation, main content, help."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from k3.reader.chapter import Chapter, by_part

CURRENT = ' aria-current="page"'
SCRIPTS = ("reader.js", "search.js")
PAGES = (
    ("status", "Status"),
    ("open", "Proved and open"),
    ("calculator", "Calculator"),
    ("benchmarks", "Benchmarks"),
    ("errata", "Errata"),
    ("port", "Check a port"),
    ("chat", "Chat"),
    ("help", "Help"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page before it is written: `path` is its name without .html."""

    path: str
    title: str
    body: str
    description: str = ""
    scripts: Sequence[str] = ()
    styles: Sequence[str] = ()


def write(page: Page) -> str:
    """The whole HTML of a page."""
    title = html.escape(page.title)
    whole = "k3 reader" if page.path == "index" else f"{title} · k3 reader"
    about = html.escape(page.description or "Kimi K3: paper, code, theorem, widget.")
    scripts = "".join(
        f'<script type="module" src="static/{name}"></script>'
        for name in (*SCRIPTS, *page.scripts)
    )
    styles = "".join(
        f'<link rel="stylesheet" href="static/{name}">\n' for name in page.styles
    )
    return f"""<!doctype html>
<html lang="en" data-page="{page.path}">
<head>
<meta charset="utf-8">
<title>{whole}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{about}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="static/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="static/katex/katex.min.css">
<link rel="stylesheet" href="static/reader.css">
{styles}{scripts}</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
{_banner()}
<div class="frame">
<nav class="chapters" aria-label="Chapters">{_contents(page.path)}</nav>
<main id="main" tabindex="-1">
{page.body}
</main>
</div>
<footer><p>Apache-2.0. Paraphrases the public report
<a href="https://arxiv.org/abs/2607.24653">arXiv 2607.24653</a>; code and statements
come from the package itself. <a href="help.html">Keys and help</a></p></footer>
</body>
</html>
"""


def _banner() -> str:
    return """<header class="banner">
<a class="home" href="index.html"><svg viewBox="0 0 32 32" aria-hidden="true"
width="22" height="22"><use href="static/favicon.svg#mark"/></svg>k3
<span>reader</span></a>
<search><form class="find" action="search.html" role="search">
<label for="q" class="unseen">Search</label>
<input id="q" name="q" type="search" placeholder="Search  ( / )" autocomplete="off"
role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<ul id="found" role="listbox" aria-label="Results" hidden></ul>
</form></search>
<a class="bar" href="status.html">Status</a>
<a class="bar" href="calculator.html">Calculator</a>
<a class="bar" href="help.html">Help</a>
</header>"""


def _contents(here: str) -> str:
    pages = [(path, html.escape(title)) for path, title in PAGES]
    return (
        '<details class="contents" open><summary>Contents</summary>'
        f"{''.join(_part(name, listed, here) for name, listed in by_part())}"
        f'<p>More</p><ul class="pages">{_links(pages, here)}</ul></details>'
    )


def _part(name: str, listed: Sequence[tuple[int, Chapter]], here: str) -> str:
    rows = [
        (each.slug, f"<b>{number}</b>{html.escape(each.title)}")
        for number, each in listed
    ]
    return f"<p>{html.escape(name)}</p><ol>{_links(rows, here)}</ol>"


def _links(rows: Sequence[tuple[str, str]], here: str) -> str:
    return "".join(
        f'<li><a href="{path}.html"{CURRENT if path == here else ""}>{shown}</a></li>'
        for path, shown in rows
    )
