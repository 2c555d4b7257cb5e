"""Every widget by name, in the order of the chapters."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from k3.errors import RequestError
from k3.reader.widgets import (
    attn_res,
    balance,
    context,
    experts,
    kda,
    loss,
    mla,
    moe,
    muon,
    mx,
    rl,
    schedule,
    situ,
    speculate,
    trace,
    vision,
)
from k3.reader.widgets import (
    cache as prefix_cache,
)
from k3.reader.widgets.widget import Widget, accept, through_python

_MODULES = (
    *(schedule, kda, mla, attn_res, moe, situ, balance, vision),
    *(muon, loss, rl, mx, speculate, context, experts, prefix_cache, trace),
)


@cache
def _catalogue() -> dict[str, Widget]:
    return {widget.name: widget for module in _MODULES for widget in module.WIDGETS}


def names() -> list[str]:
    """The names of all widgets."""
    return list(_catalogue())


def get(name: str) -> Widget:
    """The widget of a name; RequestError lists the names there are."""
    if name not in _catalogue():
        raise RequestError(
            f"a widget must be one of {', '.join(names())}: got {name!r}; choose one"
        )
    return _catalogue()[name]


def evaluate(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a widget by the equations of k3.spec: what `/api/eval` answers.

    RequestError for a name that does not exist and for a state that is not in range.
    """
    widget = get(name)
    return through_python(widget, accept(widget, state))
