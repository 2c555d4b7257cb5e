"""A widget: controls, the typed graph that the page runs, and Python that checks it.

The page executes the graph alone. `python` is a function on plain numbers and lists
that calls the equations of k3.spec; its source is what "copy as Python" prints, and
`/api/eval` calls it. Tests hold the three sides together: page, graph, equations.
"""

import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from k3.errors import RequestError
from k3.graph import evaluate as run_graph
from k3.graph import json_form
from k3.graph.term import Block
from k3.reader.widgets import control
from k3.reader.widgets.control import Control, plain

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Widget:
    """One live figure. graphs has one entry "" or one for each option of `variant`."""

    name: str
    title: str
    says: str
    controls: tuple[Control, ...]
    graphs: Mapping[str, Callable[[], Block]]
    python: Callable[..., dict[str, Any]]
    variant: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    # An algorithm that is no graph: its outputs by state, made by `python` at build.
    table: bool = False
    # Outputs of all states in order, recorded before: the build runs no model.
    kept: Callable[[], Sequence[State]] | None = None
    # Where a served page gets a table for inputs of the reader's own.
    asks: str = ""
    # Output or label of the graph to what the page calls it.
    names: Mapping[str, str] = field(default_factory=dict)
    # What the drawing needs besides: rows of text, thresholds to mark.
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def default(self) -> State:
        """The state that the widget starts in."""
        return {c.name: c.value for c in self.controls}


def block(widget: Widget, state: State) -> Block:
    """The graph that a state runs."""
    return widget.graphs[str(state[widget.variant]) if widget.variant else ""]()


def accept(widget: Widget, state: Mapping[str, Any]) -> State:
    """A whole state from one that came from outside; RequestError says what fails."""
    known = widget.default
    unknown = sorted(set(state) - set(known))
    if unknown:
        raise RequestError(
            f"{widget.name} has no control {', '.join(unknown)}; it has "
            f"{', '.join(known)}"
        )
    return {
        c.name: control.accept(c, state.get(c.name, c.value)) for c in widget.controls
    }


def bind(widget: Widget, state: State) -> tuple[dict[str, Any], dict[str, int]]:
    """Arrays by input name, and sizes by dimension, of a state."""
    env = {name: np.asarray(value) for name, value in widget.fixed.items()}
    sizes = dict(widget.sizes)
    for each in widget.controls:
        value = state[each.name]
        if each.kind == "size":
            sizes[each.name] = value
        elif each.kind == "integer":
            env[each.name] = np.asarray(value, dtype=np.int64)
        elif each.kind != "choice":
            env[each.name] = np.asarray(value, dtype=float)
    return env, sizes


def through_graph(widget: Widget, state: State) -> dict[str, Any]:
    """The outputs as the page computes them, by graph or table, arrays as lists."""
    if widget.table:
        found = tabulate(widget)[key(widget, state)]
        return dict(found)
    env, sizes = bind(widget, state)
    with np.errstate(all="ignore"):
        outputs = run_graph(block(widget, state), env, sizes)
    return {name: plain(array) for name, array in outputs.items()}


def key(widget: Widget, state: State) -> str:
    """The state as the text that the page looks up in a table."""
    values = [state[c.name] for c in widget.controls]
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def tabulate(widget: Widget) -> dict[str, dict[str, Any]]:
    """The outputs of every state of a widget whose controls are few and discrete."""
    ranges = [_range(c) for c in widget.controls]
    names = [c.name for c in widget.controls]
    states = [dict(zip(names, values, strict=True)) for values in product(*ranges)]
    kept = widget.kept() if widget.kept else (through_python(widget, s) for s in states)
    return {key(widget, s): found for s, found in zip(states, kept, strict=True)}


def _range(control: Control) -> Sequence[Any]:
    if control.kind == "choice":
        return control.options
    return range(round(control.low), round(control.high) + 1, round(control.step))


def through_python(widget: Widget, state: State) -> dict[str, Any]:
    """The outputs by the equations of k3.spec, arrays as lists."""
    with np.errstate(all="ignore"):
        found = widget.python(**state)
    return {name: plain(value) for name, value in found.items()}


def code(widget: Widget) -> str:
    """Python that runs alone: the imports that `python` uses, and its source."""
    function = widget.python
    used = sorted(set(_names(function.__code__)) & function.__globals__.keys())
    imports = [_import(name, function.__globals__[name]) for name in used]
    third = sorted(line for line in imports if not line.startswith("from k3"))
    ours = sorted(line for line in imports if line.startswith("from k3"))
    head = "\n\n".join("\n".join(part) for part in (third, ours) if part)
    return f"{head}\n\n\n{inspect.getsource(function)}"


def _import(name: str, value: Any) -> str:
    if not isinstance(value, types.ModuleType):
        return f"from {value.__module__} import {name}"
    package, _, last = value.__name__.rpartition(".")
    known = last if last == name else f"{last} as {name}"
    return f"from {package} import {known}" if package else f"import {last} as {name}"


def _names(body: types.CodeType) -> Iterator[str]:
    yield from body.co_names
    for constant in body.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def export(widget: Widget) -> dict[str, Any]:
    """What the page gets: controls, graphs as JSON, Python source."""
    return {
        "name": widget.name,
        "title": widget.title,
        "says": widget.says,
        "controls": [control.export(c) for c in widget.controls],
        "graphs": {k: slim(make()) for k, make in widget.graphs.items()},
        "variant": widget.variant,
        "sizes": dict(widget.sizes),
        "table": tabulate(widget) if widget.table else None,
        "asks": widget.asks,
        "fixed": {k: plain(v) for k, v in widget.fixed.items()},
        "names": dict(widget.names),
        "extra": dict(widget.extra),
        "code": code(widget),
        "call": widget.python.__name__,
    }


def slim(block: Block) -> dict[str, Any]:
    """A graph without what the page does not read: half the bytes."""
    whole = json_form.plain(block)
    return {**whole, "nodes": [_slim(node) for node in whole["nodes"]]}


def _slim(node: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: node[name] for name in ("op", "attrs", "inputs", "shape")}
    if node["op"] == "input":
        kept["attrs"] = {"name": node["attrs"]["name"]}
    return {**kept, "label": node["label"]} if node["label"] else kept


def draw(widget: Widget, rng: np.random.Generator) -> State:
    """A random state: every second one on the steps, where ties happen."""
    on_step = bool(rng.integers(2))
    return {c.name: control.draw(c, rng, on_step) for c in widget.controls}
