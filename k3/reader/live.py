"""Figures of a page: what `k3.reader.widgets` makes, and the script that moves it."""

import html

from k3.reader import widgets

SCRIPT = "widgets/index.js"
STYLE = "widgets.css"


def names() -> tuple[str, ...]:
    """The widgets by name."""
    return tuple(widgets.names())


def widget(name: str) -> str:
    """The element of a widget, with the numbers it starts with inside."""
    return widgets.element(name)


def graph(name: str) -> str:
    """The element of a graph."""
    made = getattr(widgets, "graph", None)
    return made(name) if made else f"<!-- graph {html.escape(name)} -->"
