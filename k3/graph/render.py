"""A graph as LaTeX, as DOT and as JSON."""

from k3.graph import json_form
from k3.graph import latex as latex_rules
from k3.graph.dims import show_shape
from k3.graph.term import Block, Term

_SHAPES = {"input": "box", "topk": "diamond", "argsort": "diamond"}


def as_block(graph: Block | Term) -> Block:
    """A single term as a block with one output."""
    if isinstance(graph, Block):
        return graph
    return Block(graph.label or graph.op, "", {graph.label or "value": graph})


def latex(graph: Block | Term) -> str:
    """An aligned display: one line a named or shared node, with its shape."""
    rows = [
        rf"  {name} &= {body} && {shape} \\"
        for name, body, shape in latex_rules.lines(as_block(graph))
    ]
    return "\n".join([r"\begin{aligned}", *rows, r"\end{aligned}"])


def dot(graph: Block | Term) -> str:
    """A Graphviz digraph: inputs are boxes, integers and booleans dashed."""
    block = as_block(graph)
    nodes = block.nodes
    ids = {id(node): f"n{i}" for i, node in enumerate(nodes)}
    out = [f"digraph {_quoted(block.name)} {{", "  rankdir=TB;"]
    for node in nodes:
        style = "" if node.dtype == "real" else ", style=dashed"
        shape = _SHAPES.get(node.op, "ellipse")
        out.append(f"  {ids[id(node)]} [label={_label(node)}, shape={shape}{style}];")
        out.extend(f"  {ids[id(arg)]} -> {ids[id(node)]};" for arg in node.args)
    for i, (name, term) in enumerate(block.outputs.items()):
        out.append(f"  out{i} [label={_quoted(name)}, shape=doubleoctagon];")
        out.append(f"  {ids[id(term)]} -> out{i};")
    return "\n".join([*out, "}"])


def json(graph: Block | Term, indent: int | None = None) -> str:
    """The text of `json_form`, which `json_form.load` reads back."""
    return json_form.dump(as_block(graph), indent)


def text(graph: Block | Term) -> str:
    """One line a node: name, primitive, operands, type and source line."""
    block = as_block(graph)
    nodes = block.nodes
    ids = {id(node): f"%{i}" for i, node in enumerate(nodes)}
    outputs = {id(t): name for name, t in block.outputs.items()}
    rows = [f"{block.name}: {block.says}"]
    for node in nodes:
        what = node.attrs["name"] if node.op == "input" else node.op
        args = " ".join(ids[id(a)] for a in node.args)
        name = outputs.get(id(node), node.label)
        rows.append(
            f"{ids[id(node)]:>5} {what} {args}".ljust(44)
            + f" {node.type!s:24} {name:14} {node.line}".rstrip()
        )
    return "\n".join(rows)


def _label(node: Term) -> str:
    what = node.attrs["name"] if node.op == "input" else node.op
    if node.op == "contract":
        what = node.attrs["axes"]
    named = f"{node.label} = " if node.label else ""
    return _quoted(f"{named}{what}\n{show_shape(node.shape)}")


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
