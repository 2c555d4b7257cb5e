"""A widget as HTML: its data inline, and a table that needs no JavaScript."""

import html
import json
from collections.abc import Mapping
from typing import Any

from k3.reader.widgets.registry import get
from k3.reader.widgets.widget import Widget, export, through_graph


def element(name: str) -> str:
    """The custom element with its graphs as JSON; inside it the numbers it starts with.

    RequestError if there is no such widget.
    """
    widget = get(name)
    # "<" would end the script early; JSON may write it as an escape.
    data = json.dumps(export(widget), ensure_ascii=False, separators=(",", ":"))
    script = data.replace("<", "\\u003c")
    return (
        f'<k3-widget name="{html.escape(name)}" id="widget-{html.escape(name)}">'
        f'<script type="application/json">{script}</script>'
        f'<div class="k3-start">{start(widget)}</div></k3-widget>'
    )


def start(widget: Widget) -> str:
    """Title, and inputs and outputs at the start, as a plain table."""
    state = widget.default
    labels = {c.name: c.label for c in widget.controls}
    found = through_graph(widget, state)
    rows = _rows(state, labels) + _rows(found, widget.names)
    return (
        f"<h4>{html.escape(widget.title)}</h4><p>{html.escape(widget.says)}</p>"
        f"<table><caption>At the start</caption><tbody>{rows}</tbody></table>"
    )


def _rows(values: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    return "".join(
        f'<tr><th scope="row">{html.escape(labels.get(name, name))}</th>'
        f"<td>{html.escape(text(value))}</td></tr>"
        for name, value in values.items()
    )


def text(value: Any) -> str:
    """Numbers short, rows of a matrix apart."""
    if isinstance(value, list):
        inner = "; " if value and isinstance(value[0], list) else ", "
        return inner.join(text(item) for item in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
