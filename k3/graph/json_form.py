"""A graph as JSON and back: the form that the reader's page runs.

    {"schema": "k3.graph/1", "name": "expert", "says": "Eq. 12: ...",
     "dims": ["D", "F"],
     "nodes": [{"id": 0, "op": "input", "attrs": {"name": "x", ...}, "inputs": [],
                "shape": ["D"], "dtype": "real", "domain": null,
                "label": "", "line": "k3/graph/situ.py:31"}, ...],
     "outputs": {"y": 12}}

Nodes come in an order in which operands precede; `inputs` are ids. A dimension is text
such as "H*(n+r)", an exact number text such as "1/100000". The attributes of each op
are listed in `attributes.ATTRIBUTES`. `load` checks every type anew.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from k3.errors import K3Error, ShapeError
from k3.graph import attributes, shapes
from k3.graph.dims import show
from k3.graph.term import Block, Term, build

SCHEMA = "k3.graph/1"


def dump(block: Block, indent: int | None = None) -> str:
    """The block as JSON text; the same block gives the same text."""
    return json.dumps(plain(block), indent=indent, ensure_ascii=False)


def plain(block: Block) -> dict[str, Any]:
    """The block as plain dictionaries and lists."""
    nodes = block.nodes
    ids = {id(node): i for i, node in enumerate(nodes)}
    return {
        "schema": SCHEMA,
        "name": block.name,
        "says": block.says,
        "dims": block.dims,
        "nodes": [_node(node, ids) for node in nodes],
        "outputs": {name: ids[id(t)] for name, t in block.outputs.items()},
    }


def _node(node: Term, ids: Mapping[int, int]) -> dict[str, Any]:
    domain = node.type.domain
    return {
        "id": ids[id(node)],
        "op": node.op,
        "attrs": attributes.write(node.op, node.attrs),
        "inputs": [ids[id(a)] for a in node.args],
        "shape": [show(d) for d in node.shape],
        "dtype": node.dtype,
        "domain": None if domain is None else show(domain),
        "label": node.label,
        "line": node.line,
    }


def load(text: str) -> Block:
    """A block from JSON text; ShapeError if it is not one or does not type."""
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}, not {SCHEMA!r}")
        made: list[Term] = []
        for node in data["nodes"]:
            made.append(_read(node, made))
        outputs = {name: made[i] for name, i in data["outputs"].items()}
        return Block(data["name"], data["says"], outputs)
    except K3Error:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
        raise ShapeError(
            f"a graph must be JSON of schema {SCHEMA}: {wrong!r}; write it with dump"
        ) from wrong


def _read(node: Mapping[str, Any], made: Sequence[Term]) -> Term:
    if node["op"] not in shapes.RULES or node["id"] != len(made):
        raise ValueError(f"node {node['id']}: unknown op {node['op']!r} or wrong order")
    if any(not 0 <= i < len(made) for i in node["inputs"]):
        raise ValueError(f"node {node['id']} reads {node['inputs']}, not yet made")
    args = [made[i] for i in node["inputs"]]
    if not shapes.accepts(node["op"], len(args)):
        raise ValueError(f"{node['op']} does not take {len(args)} operands")
    label, line = str(node["label"]), str(node["line"])
    if not (label.isidentifier() or not label) or not line.isprintable():
        raise ValueError(f"node {node['id']} has label {label!r} and line {line!r}")
    term = build(node["op"], args, **attributes.read(node["op"], node["attrs"]))
    if [show(d) for d in term.shape] != node["shape"] or term.dtype != node["dtype"]:
        raise ValueError(
            f"node {node['id']} has type {term.type}, not the {node['shape']} it claims"
        )
    return replace(term, label=label, line=line)
