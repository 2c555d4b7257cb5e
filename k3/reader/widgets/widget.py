"""A widget: controls, the typed graph that the page runs, and Python that checks it.

The page executes the graph alone. `python` is a function on plain numbers and lists
that calls the equations of k3.spec; its source is what "copy as Python" prints, and
`/api/eval` calls it. Tests hold the three sides together: page, graph, equations.
"""

import inspect
import json
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np

from k3.errors import RequestError
from k3.graph import evaluate as run_graph
from k3.graph import json_form
from k3.graph.term import Block

Kind = Literal["number", "integer", "size", "array", "flags", "choice"]
State = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """What a reader sets. A size is a dimension of the graph, a choice picks a graph.

    array and flags are lists, or lists of lists, of one shape; flags hold 0 and 1.
    """

    name: str
    value: Any
    label: str
    kind: Kind = "number"
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    options: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


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
    return {c.name: _accept(c, state.get(c.name, c.value)) for c in widget.controls}


def _accept(control: Control, value: Any) -> Any:
    if control.kind == "choice":
        if value in control.options:
            return value
        wanted = f"one of {', '.join(control.options)}"
    elif not _same_shape(value, control.value):
        wanted = f"numbers of the shape of {json.dumps(control.value)}"
    elif all(control.low <= x <= control.high for x in _flat(value)):
        return value
    else:
        wanted = f"between {control.low:g} and {control.high:g}"
    came = json.dumps(value)[:80] if _plain(value) else type(value).__name__
    raise RequestError(f"{control.name} must be {wanted}: got {came}; change it")


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float | list | None)


def _same_shape(value: Any, like: Any) -> bool:
    if isinstance(like, list):
        return (
            isinstance(value, list)
            and len(value) == len(like)
            and all(_same_shape(v, item) for v, item in zip(value, like, strict=True))
        )
    whole = isinstance(like, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return False
    return math.isfinite(value)


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def bind(widget: Widget, state: State) -> tuple[dict[str, Any], dict[str, int]]:
    """Arrays by input name, and sizes by dimension, of a state."""
    env = {name: np.asarray(value) for name, value in widget.fixed.items()}
    sizes = dict(widget.sizes)
    for control in widget.controls:
        value = state[control.name]
        if control.kind == "size":
            sizes[control.name] = value
        elif control.kind == "integer":
            env[control.name] = np.asarray(value, dtype=np.int64)
        elif control.kind != "choice":
            env[control.name] = np.asarray(value, dtype=float)
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
    return {key(widget, s): through_python(widget, s) for s in states}


def _range(control: Control) -> Sequence[Any]:
    if control.kind == "choice":
        return control.options
    return range(round(control.low), round(control.high) + 1, round(control.step))


def through_python(widget: Widget, state: State) -> dict[str, Any]:
    """The outputs by the equations of k3.spec, arrays as lists."""
    with np.errstate(all="ignore"):
        found = widget.python(**state)
    return {name: plain(value) for name, value in found.items()}


def plain(value: Any) -> Any:
    """Arrays and numpy scalars as lists and numbers."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, int):
        return int(value)
    # JSON has no NaN: what is not defined is null.
    return float(value) if math.isfinite(value) else None


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
        "controls": [_export(c) for c in widget.controls],
        "graphs": {k: slim(make()) for k, make in widget.graphs.items()},
        "variant": widget.variant,
        "sizes": dict(widget.sizes),
        "table": tabulate(widget) if widget.table else None,
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


def _export(control: Control) -> dict[str, Any]:
    return {k: v for k, v in asdict(control).items() if v != ()}


def draw(widget: Widget, rng: np.random.Generator) -> State:
    """A random state: every second one on the steps, where ties happen."""
    on_step = bool(rng.integers(2))
    return {c.name: _draw(c, rng, on_step) for c in widget.controls}


def _draw(control: Control, rng: np.random.Generator, on_step: bool) -> Any:
    if control.kind == "choice":
        return str(rng.choice(control.options))
    shape = np.shape(control.value)
    whole = all(isinstance(x, int) for x in _flat(control.value))
    if whole:
        step = max(1, round(control.step))
        steps = round((control.high - control.low) / step)
        return plain(round(control.low) + step * rng.integers(0, steps + 1, size=shape))
    span = control.high - control.low
    if on_step:
        count = round(span / control.step)
        values = control.low + control.step * rng.integers(0, count + 1, size=shape)
        values = np.minimum(values, control.high)
    else:
        values = control.low + span * rng.random(size=shape)
    return plain(values)
