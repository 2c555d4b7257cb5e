"""The widget of the tiny model: what it keeps and chooses, token by token.

The page looks the record up by token; a served page asks for a text of its own.
"""

from typing import Any

from k3.reader import trace
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget


def traced(token, text="Return a new list of the items"):  # type: ignore[no-untyped-def]
    """The shipped model after so many tokens of a text: its states and its choices."""
    return trace.record(text)["steps"][token - 1]


def kept() -> list[dict[str, Any]]:
    """The steps of the record that stands in the package."""
    return list(trace.kept()["steps"])


def own(text: str) -> dict[str, Any]:
    """`/api/trace`: the steps of a text of the reader's own, and what they are called.

    RequestError for no text, and for one that is too long.
    """
    found = trace.record(text)
    return {"steps": found["steps"], "extra": named(found)}


def named(found: dict[str, Any]) -> dict[str, Any]:
    """What the drawing calls tokens, layers, sources and sparse layers."""
    layers = enumerate(found["layers"], 1)
    return {
        "tokens": found["tokens"],
        "layers": [f"layer {i}, {kind}" for i, kind in layers],
        "sparse": [f"layer {i}" for i in found["sparse"]],
        "sources": found["sources"],
    }


_KEPT = trace.kept()
TRACE = Widget(
    name="trace",
    title="Inside the tiny model",
    says=f"The model in the package, of {len(_KEPT['layers'])} layers, reads "
    f"“{_KEPT['text']}”, one token at a time.",
    controls=(
        Control(
            name="token",
            value=min(4, len(_KEPT["tokens"])),
            label="tokens read",
            kind="size",
            low=1,
            high=len(_KEPT["tokens"]),
            step=1,
        ),
    ),
    graphs={},
    python=traced,
    table=True,
    kept=kept,
    asks="api/trace",
    extra=named(_KEPT),
    names={
        "rows": "cache rows in all MLA layers",
        "memory": "size of each KDA memory",
        "cached": "cache rows of each MLA layer",
        "depth": "depth weights, layer by source",
        "experts": "experts chosen, sparse layer by expert",
    },
)

WIDGETS = (TRACE,)
