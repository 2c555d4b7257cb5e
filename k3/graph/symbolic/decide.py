"""Whether two programs are equal for all sizes and inputs, by normal form: level N.

The normal form is a decision procedure of this package, not replayed in the kernel:
what it says yes to is evidence of level N. It never says yes to what `refute` refutes.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from k3.errors import ShapeError
from k3.graph.dims import Shape, show_shape
from k3.graph.symbolic import canonical
from k3.graph.symbolic.coordinates import Outputs
from k3.graph.symbolic.denote import denote
from k3.graph.symbolic.index import Place, Undecided, places
from k3.graph.symbolic.reading import Symbols, tensor
from k3.graph.symbolic.tensor import Tensor, leaf
from k3.graph.term import Block, Term

Sides = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Verdict:
    """equal: True, False (forms differ) or None (not followed); and where or why."""

    equal: bool | None
    why: str = ""


def symbolic(block: Block) -> dict[str, Tensor]:
    """The outputs of a block as functions of places."""
    tensors = denote(list(block.outputs.values()))
    return dict(zip(block.outputs, tensors, strict=True))


def same(graph: Block, reference: Block) -> Verdict:
    """Compare all outputs of two graphs, for all sizes >= 1 and all real inputs."""
    _same_inputs(graph, {n: t.shape for n, t in reference.inputs.items()})
    return _compared(lambda: (symbolic(graph), symbolic(reference)))


def equals_coordinates(graph: Block, text: Callable[[Symbols], Outputs]) -> Verdict:
    """Compare a graph with a text in coordinates, name by name, then the outputs.

    What the text names must be a named node of the graph. Each is compared with the
    earlier names as inputs on both sides; so equality of all parts is equality of the
    whole.
    """
    reading = Symbols()
    try:
        theirs = {n: tensor(shape, f) for n, (shape, f) in text(reading).items()}
        pairs = _matched(graph, reading.named)
    except Undecided as why:
        return Verdict(None, str(why))
    _same_inputs(graph, reading.inputs)
    known: dict[int, Tensor] = {}
    for n, (node, wanted) in enumerate(pairs, 1):
        verdict = _compared(
            lambda: ({node.label: denote([node], known)[0]}, {node.label: wanted})  # noqa: B023
        )
        if verdict.equal is not True:
            return verdict
        known[id(node)] = leaf(f"@{n}", node.shape)
    terms = list(graph.outputs.values())
    return _compared(
        lambda: (dict(zip(graph.outputs, denote(terms, known), strict=True)), theirs)
    )


def _same_inputs(graph: Block, shapes: Mapping[str, Shape]) -> None:
    for name, node in graph.inputs.items():
        other = shapes.get(name, node.shape)
        if other != node.shape:
            raise ShapeError(
                f"an input must have one shape on both sides: {name} has "
                f"{show_shape(node.shape)} and {show_shape(other)}; declare it alike"
            )


def _matched(
    graph: Block, named: Sequence[tuple[str, Tensor]]
) -> list[tuple[Term, Tensor]]:
    """The n-th node of a name and shape for the n-th tensor of that name and shape.

    A wrong match can only make the answer False: each pair is compared.
    """
    waiting: dict[tuple[str, Shape], list[Term]] = {}
    for node in graph.nodes:
        if node.label:
            waiting.setdefault((node.label, node.shape), []).append(node)
    pairs = []
    for name, wanted in named:
        found = waiting.get((name, wanted.shape))
        if not found:
            raise Undecided(
                f"{graph.name} has no node named {name} {show_shape(wanted.shape)}"
            )
        pairs.append((found.pop(0), wanted))
    return pairs


def _compared(sides: Callable[[], tuple[Sides, Sides]]) -> Verdict:
    try:
        ours, theirs = sides()
        if ours.keys() != theirs.keys():
            raise ShapeError(
                f"both sides need the same outputs: got {', '.join(ours)} and "
                f"{', '.join(theirs)}; name them alike"
            )
        for name, one in ours.items():
            if differ(one, theirs[name]):
                return Verdict(False, f"{name} {show_shape(one.shape)} differs")
    except Undecided as why:
        return Verdict(None, str(why))
    return Verdict(True)


def differ(one: Tensor, other: Tensor) -> bool:
    """Whether the normal forms differ at some generic place."""
    if one.shape != other.shape:
        raise ShapeError(
            f"both sides need one shape: got {show_shape(one.shape)} and "
            f"{show_shape(other.shape)}; reshape one of them"
        )
    for at in generic(one.shape):
        left, right = one.at(at), other.at(at)
        if canonical.poly(left.items()) != canonical.poly(right.items()):
            return True
    return False


def generic(shape: Shape) -> Iterator[tuple[Place, ...]]:
    """Generic places of a shape: one for each way to choose parts of sums."""
    yield from itertools.product(*map(list, map(places, shape)))
