"""Every small change of a graph: a function dropped or exchanged, a wire moved.

Each variant must be refused by its types, refuted with a counterexample, or equal for
all sizes by normal form; one that is none of these is undecided.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from k3.errors import ShapeError
from k3.graph import display
from k3.graph.references import references
from k3.graph.refute import refute
from k3.graph.symbolic import same
from k3.graph.term import Block, Term, build, let, rebuild

Fate = Literal["refused", "refuted", "equal", "undecided"]

# What an entrywise function is exchanged with; dropping it is always tried.
EXCHANGED = {
    "tanh": ("sigmoid",),
    "sigmoid": ("tanh", "silu"),
    "silu": ("sigmoid",),
    "exp": ("sigmoid",),
    "sqrt": (),
    "sin": ("cos",),
    "cos": ("sin",),
    "gelu": (),
    "neg": (),
    "softmax": (),
    "unit_rms": (),
    "rms_norm": (),
    "l2_norm": (),
    "scale": (),
    "flip": (),
}
BINARY = ("add", "sub", "mul", "div")


def variants(block: Block) -> Iterator[tuple[str, Block | ShapeError]]:
    """(what is changed and where, the changed block or the refusal)."""
    inputs = list(block.inputs.values())
    for node in block.nodes:
        for what, op, args in changes(node, inputs):
            try:
                attrs = node.attrs if op == node.op else {}
                new = build(op, args, **attrs) if op else args[0]
                yield f"{what} {node.line}", put(block, node, let(node.label, new))
            except ShapeError as refused:
                yield f"{what} {node.line}", refused


def changes(
    node: Term, inputs: list[Term]
) -> Iterator[tuple[str, str, tuple[Term, ...]]]:
    """(what, the new op or "" for its first operand, operands)."""
    if node.op in EXCHANGED:
        yield f"no {node.op}", "", node.args
        for other in EXCHANGED[node.op]:
            yield f"{other} for {node.op}", other, node.args
    if node.op in BINARY:
        for other in BINARY:
            if other != node.op:
                yield f"{other} for {node.op}", other, node.args
        yield f"{node.op} exchanged", node.op, node.args[::-1]
        yield f"no {node.op}", "", node.args
    if node.op == "input":
        for wire in inputs:
            if wire is not node and wire.type == node.type:
                what = f"{wire.attrs['name']} for {node.attrs['name']}"
                yield what, "", (wire,)


def put(block: Block, node: Term, new: Term) -> Block:
    """The block with one node replaced."""
    return rebuild(block, lambda old, made: new if old is node else made)


def fate(step: str, variant: Block | ShapeError) -> Fate:
    """What becomes of a variant of a step of the catalogue."""
    if isinstance(variant, ShapeError):
        return "refused"
    right = display.get(step)
    if refute(variant, references[step], inputs=right) is not None:
        return "refuted"
    return "equal" if same(variant, right).equal is True else "undecided"


def survey(step: str) -> tuple[Counter[Fate], list[str]]:
    """How many variants of a step meet which fate, and the undecided ones."""
    count: Counter[Fate] = Counter()
    undecided = []
    for what, variant in variants(display.get(step)):
        end = fate(step, variant)
        count[end] += 1
        if end == "undecided":
            undecided.append(what)
    return count, undecided
