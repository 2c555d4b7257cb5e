"""The graph pane: a typed graph drawn at build, shapes on its edges, and as a table.

With JavaScript a node tells its value on one draw of inputs, its line and its lemma;
without it the drawing and the table stand.
"""

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from k3.errors import RequestError
from k3.graph import catalogue, draw
from k3.graph.dims import show_shape
from k3.graph.term import Block, Term
from k3.reader.widgets import layout, registry
from k3.reader.widgets.control import plain
from k3.reader.widgets.widget import slim

# A theorem of k3.proof about the value under a label.
LEMMAS = {
    "capped": "situ.soft_cap_bound",
    "lifted": "situ.soft_cap_bound",
    "hidden": "situ.output_bound",
    "S_next": "kda.update_is_affine",
    "rolled": "window.rolled_window_is_history",
    "chosen": "moe.top_k_leads_the_rest",
    "weights": "route.weights_sum_to_one",
    "p": "probability.softmax_sums_to_one",
    "latents_next": "mla.packed_append",
    "sources": "packed_mix.mix_reads_rows",
    "rows": "packed_depth.packed_equals_lists",
    "threshold": "threshold.threshold_minimizes",
    "blocks": "muon.split_then_merge",
    "M": "context.affine_maps_compose",
}
MOST_NODES = 140
MOST_LETTERS = 18
SEED = 1


def element(name: str) -> str:
    """The pane of a graph of k3.graph or of a widget; RequestError if there is none."""
    block = find(name)
    title = html.escape(f"{name}: {block.says}")
    drawn = len(block.nodes) <= MOST_NODES
    script = _script(block) if drawn else ""
    picture = svg(block, name) if drawn else _too_many(block)
    return (
        f'<k3-graph name="{html.escape(name)}">'
        f'{script}<section class="k3-card" aria-label="Graph {html.escape(name)}">'
        f"<header><h4>Typed graph</h4><p>{title}</p></header>"
        f'{picture}<div class="k3-node" aria-live="polite"></div>'
        f"<details><summary>The graph as a table</summary>{table(block)}</details>"
        "</section></k3-graph>"
    )


@cache
def _of_widgets() -> dict[str, Block]:
    found = [registry.get(name) for name in registry.names()]
    blocks = [make() for widget in found for make in widget.graphs.values()]
    return {block.name: block for block in reversed(blocks)}


def find(name: str) -> Block:
    """The graph of a name; RequestError lists the names there are."""
    if name in catalogue:
        return catalogue[name]()
    if name not in _of_widgets():
        names = ", ".join((*catalogue, *_of_widgets()))
        raise RequestError(f"a graph must be one of {names}: got {name!r}; choose one")
    return _of_widgets()[name]


def _script(block: Block) -> str:
    """What the drawing needs to tell values; a table alone needs nothing."""
    data = json.dumps(_data(block), ensure_ascii=False, separators=(",", ":"))
    return (
        f'<script type="application/json">{data.replace("<", chr(92) + "u003c")}'
        "</script>"
    )


def _data(block: Block) -> dict[str, Any]:
    sizes = draw.sizes(block)
    env = draw.draw(block, sizes, SEED)
    lines = [node.line for node in block.nodes]
    inputs = {key: _short(plain(x)) for key, x in env.items()}
    used = {node.label for node in block.nodes}
    lemmas = {label: name for label, name in LEMMAS.items() if label in used}
    drawn = {"sizes": sizes, "env": inputs, "lemmas": lemmas}
    return {"graph": slim(block), "lines": lines, **drawn}


def _short(value: Any) -> Any:
    """Three digits are enough to look at, and a third of the bytes."""
    if isinstance(value, list):
        return [_short(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value


def _too_many(block: Block) -> str:
    return (
        f"<p>{len(block.nodes)} nodes are too many to draw; the table has all, and "
        f"<code>k3 graph {html.escape(block.name)} --dot</code> draws them.</p>"
    )


def name_of(node: Term, outputs: dict[int, str]) -> str:
    """What a node is called: its output, its label, its input, or its primitive."""
    if node.op == "input":
        return str(node.attrs["name"]).rpartition(".")[0] or str(node.attrs["name"])
    return outputs.get(id(node)) or node.label or node.op


def svg(block: Block, name: str) -> str:
    """The drawing; nodes are focusable and carry their number."""
    placed = layout.lay_out(block)
    outputs = {id(term): key for key, term in block.outputs.items()}
    places = placed.places
    edges = [_edge(places[a], between, places[i]) for a, i, between in placed.edges]
    read = dict.fromkeys(a for a, _, _ in placed.edges)
    shapes = [_shape(places[a], show_shape(block.nodes[a].shape)) for a in read]
    nodes = [_node(i, node, places[i], outputs) for i, node in enumerate(block.nodes)]
    return (
        f'<div class="k3-plot" tabindex="0" role="region" '
        f'aria-label="Drawing of {html.escape(name)}">'
        f'<svg class="k3-graph" viewBox="0 0 {placed.width:g} {placed.height:g}" '
        f'width="{placed.width:g}" height="{placed.height:g}" role="group" '
        f'aria-label="{html.escape(name)}, {len(nodes)} nodes">'
        f'<g class="edges" aria-hidden="true">{"".join(edges)}{"".join(shapes)}</g>'
        f"{''.join(nodes)}</svg></div>"
    )


def _edge(
    start: layout.Point, between: Sequence[layout.Point], end: layout.Point
) -> str:
    """Curves from layer to layer, straight down beside the nodes that it passes."""
    half = layout.HEIGHT / 2
    x, y = start[0], start[1] + half
    path = f"M{x:.0f} {y:g}"
    for u, v in (*between, end):
        bend = (y + v - half) / 2
        path += f"C{x:.0f} {bend:g} {u:.0f} {bend:g} {u:.0f} {v - half:g}"
        x, y = u, v + half
        path += f"V{y:g}" if (u, v) != end else ""
    return f'<path d="{path}"/>'


def _shape(place: layout.Point, shape: str) -> str:
    """What every edge from a node carries, once, where they start."""
    x, y = place[0] + 5, place[1] + layout.HEIGHT / 2 + 12
    return f'<text x="{x:.0f}" y="{y:g}">{html.escape(shape)}</text>'


def _node(i: int, node: Term, place: layout.Point, outputs: dict[int, str]) -> str:
    name, shape = name_of(node, outputs), show_shape(node.shape)
    kind = "input" if node.op == "input" else "out" if id(node) in outputs else ""
    says = f"{name} {node.op} {shape}"
    middle = f"{place[0]:.0f}"
    x, y = round(place[0]) - layout.WIDTH / 2, place[1] - layout.HEIGHT / 2
    return (
        f'<g class="node {kind}" data-node="{i}" role="button" '
        f'tabindex="{0 if i == 0 else -1}" aria-label="{html.escape(says)}">'
        f'<rect x="{x:g}" y="{y:g}" width="{layout.WIDTH}" height="{layout.HEIGHT}" '
        f'rx="7"/><text aria-hidden="true" x="{middle}" y="{place[1] - 2:g}">'
        f"{html.escape(_cut(name))}</text> "
        f'<text class="op" aria-hidden="true" x="{middle}" y="{place[1] + 13:g}">'
        f"{html.escape(node.op)}</text></g>"
    )


def _cut(text: str) -> str:
    """The last words that fit into a node: a part of the name, as its label wants."""
    while len(text) > MOST_LETTERS and (found := re.search(r"[._]", text)):
        text = text[found.end() :]
    return text[-MOST_LETTERS:]


def table(block: Block) -> str:
    """Every node as a row: number, name, primitive, operands, shape, line."""
    outputs = {id(term): key for key, term in block.outputs.items()}
    above = layout.operands(block.nodes)
    rows = "".join(
        f'<tr><th scope="row">{i}</th><td>{html.escape(name_of(node, outputs))}</td>'
        f"<td>{node.op}</td><td>{', '.join(map(str, args))}</td>"
        f"<td>{html.escape(show_shape(node.shape))}</td>"
        f"<td><code>{html.escape(node.line)}</code></td></tr>"
        for i, (node, args) in enumerate(zip(block.nodes, above, strict=True))
    )
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in ("node", "name", "primitive", "reads", "shape", "line")
    )
    return (
        '<div class="k3-wide" tabindex="0" role="region" '
        f'aria-label="Nodes of {html.escape(block.name)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
