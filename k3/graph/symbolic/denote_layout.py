"""What the primitives that move entries or pick them mean at one place."""

from collections.abc import Sequence
from typing import Any

from k3.graph.dims import Compound
from k3.graph.symbolic import canonical, normal
from k3.graph.symbolic.index import (
    Place,
    Undecided,
    backwards,
    regroup,
    shifted,
    variable,
)
from k3.graph.symbolic.tensor import Entry, Tensor
from k3.graph.term import Term


def permute_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """Axes in another order."""
    order = node.attrs["order"]
    return lambda at: args[0].at(tuple(at[order.index(i)] for i in range(len(order))))


def reshape_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """Axes split or merged."""
    old = node.args[0].shape
    return lambda at: args[0].at(tuple(regroup(old, node.shape, at)))


def broadcast_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """Axes that are not read."""
    axes = node.attrs["axes"]
    return lambda at: args[0].at(tuple(at[i] for i in axes))


def concat_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """The part that a place is in."""
    axis = node.attrs["axis"]
    if any(not _single(a.shape[axis]) for a in args):
        raise Undecided(f"concat at {node.line} joins axes of several parts")

    def at(places: tuple[Place, ...]) -> Any:
        n, place = _part([a.shape[axis] for a in args], places[axis], node)
        return args[n].at((*places[:axis], place, *places[axis + 1 :]))

    return at


def _part(dims: Sequence[Any], place: Place, node: Term) -> tuple[int, Place]:
    """Which part a place is in, and where there; fixed sizes are counted off."""
    if place[0] == "in":
        return place[1], place[2]
    n, rest = 0, place[1]
    while place[0] == "k" and isinstance(dims[n], int) and rest >= dims[n]:
        n, rest = n + 1, rest - dims[n]
    if place[0] != "k" or not isinstance(dims[n], int):
        raise Undecided(f"concat at {node.line} is read at {place[0]}")
    return n, ("k", rest)


def _single(dim: Any) -> bool:
    return not (isinstance(dim, Compound) and dim.op == "+")


def slice_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """A place further on."""
    axis, start, count = (node.attrs[n] for n in ("axis", "start", "size"))
    whole = args[0].shape[axis]

    def at(places: tuple[Place, ...]) -> Any:
        place = shifted(whole, start, count, places[axis])
        return args[0].at((*places[:axis], place, *places[axis + 1 :]))

    return at


def stack_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """The item of a place."""
    axis = node.attrs["axis"]
    return lambda at: args[at[axis][1]].at(at[:axis] + at[axis + 1 :])


def flip_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """A place from the end."""
    axis, dim = node.attrs["axis"], node.shape[node.attrs["axis"]]
    return lambda at: args[0].at(
        (*at[:axis], backwards(dim, at[axis]), *at[axis + 1 :])
    )


def topk_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """The place of a large score."""
    (dim,) = args[0].shape if len(args[0].shape) == 1 else (None,)
    if not isinstance(dim, str):
        raise Undecided(f"top-k at {node.line} is not of one vector")
    place = variable(dim)
    scores = canonical.poly(normal.total(place[1], dim, args[0](place)).items())
    return lambda at: ("top", at[0], scores)


def gather_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """The place that an integer names."""
    x, index = args
    axis, width = node.attrs["axis"], len(index.shape)

    def at(places: tuple[Place, ...]) -> Any:
        chosen = index.at(places[axis : axis + width])
        return x.at((*places[:axis], chosen, *places[axis + width :]))

    return at


def one_hot_entry(node: Term, args: Sequence[Tensor]) -> Entry:
    """One where two places are equal."""
    return lambda at: normal.atom(("same", args[0].at(at[:-1]), at[-1]))
