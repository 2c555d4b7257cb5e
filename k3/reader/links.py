"""Dead links: every relative address of the pages leads to a page, file or anchor."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

_ADDRESS = re.compile(r'<(?!code)[a-z0-9-]+ [^>]*?(?:href|src|action)="([^"]*)"')
_ANCHOR = re.compile(r' id="([^"]+)"')


def dead(site: Mapping[str, bytes]) -> list[str]:
    """A sentence for each link that leads nowhere; external ones must be https."""
    pages = {p: b.decode() for p, b in site.items() if p.endswith(".html")}
    anchors = {path: set(_ANCHOR.findall(text)) for path, text in pages.items()}
    found: dict[str, None] = {}
    for path, text in pages.items():
        for target in _ADDRESS.findall(text):
            wrong = _wrong(path, target.replace("&amp;", "&"), site, anchors)
            found |= {f"{path}: the link {target} {wrong}": None} if wrong else {}
    return list(found)


def _wrong(
    path: str, target: str, site: Mapping[str, bytes], anchors: Mapping[str, set[str]]
) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return "" if parts.scheme == "https" else "is neither relative nor https"
    file = unquote(parts.path) or path
    if file not in site:
        return "leads to no page or file"
    if parts.fragment and file in anchors and parts.fragment not in anchors[file]:
        return "leads to no anchor of that page"
    return ""


def external(site: Mapping[str, bytes]) -> Iterator[str]:
    """The addresses that a page would load from elsewhere: there must be none."""
    for path, content in site.items():
        if path.endswith((".html", ".css", ".js")):
            text = content.decode()
            for found in re.findall(
                r'(?:src="|url\(["\']?|import ["\'])(\w+:[^"\')]*)', text
            ):
                if not found.startswith("data:"):
                    yield f"{path}: {found}"
