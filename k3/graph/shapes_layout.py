"""Shape rules of the primitives that only move entries."""

from collections.abc import Sequence
from dataclasses import replace

from k3.graph.dims import at_most, atoms, plus, show, show_shape
from k3.graph.kinds import Attrs, Type, has_axis, need


def permute_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Axes in another order."""
    (a,) = args
    order = attrs["order"]
    need(
        sorted(order) == list(range(len(a.shape))),
        f"order {list(order)} must name each axis once",
        f"there are {len(a.shape)}",
    )
    return replace(a, shape=tuple(a.shape[i] for i in order))


def reshape_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Axes split or merged, none moved."""
    (a,) = args
    shape = attrs["shape"]
    need(
        atoms(a.shape) == atoms(shape),
        f"a reshape to {show_shape(shape)} must keep the axes in their order",
        "permute first",
    )
    return replace(a, shape=shape)


def broadcast_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Entries repeated along new axes."""
    (a,) = args
    shape, axes = attrs["shape"], attrs["axes"]
    fits = len(axes) == len(a.shape) and list(axes) == sorted(set(axes))
    need(
        fits
        and all(0 <= i < len(shape) for i in axes)
        and tuple(shape[i] for i in axes) == a.shape,
        f"axes {list(axes)} of {show_shape(shape)} must be the operand's, in order",
        "name where each axis goes",
    )
    return replace(a, shape=shape)


def concat_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Side by side along an axis."""
    axis, first = attrs["axis"], args[0]
    has_axis(first, axis)
    others = {a.shape[:axis] + a.shape[axis + 1 :] for a in args}
    need(
        len(others) == 1 and len({(a.dtype, a.domain) for a in args}) == 1,
        f"parts must agree in every axis but {axis}",
        "reshape them first",
    )
    joined = plus(*[a.shape[axis] for a in args])
    return replace(first, shape=(*first.shape[:axis], joined, *first.shape[axis + 1 :]))


def slice_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Rows start to start + size of an axis."""
    (a,) = args
    axis, start, size = attrs["axis"], attrs["start"], attrs["size"]
    has_axis(a, axis)
    need(
        at_most(plus(start, size), a.shape[axis]),
        f"rows {show(start)} to {show(plus(start, size))} must lie in "
        f"{show(a.shape[axis])} for all sizes",
        "cut what is surely there",
    )
    return replace(a, shape=(*a.shape[:axis], size, *a.shape[axis + 1 :]))


def stack_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Items along a new axis."""
    axis, first = attrs["axis"], args[0]
    need(len(set(args)) == 1, "items must have one type", "reshape them first")
    need(0 <= axis <= len(first.shape), f"axis {axis} is out of range", "count from 0")
    shape = (*first.shape[:axis], len(args), *first.shape[axis:])
    return replace(first, shape=shape)


def flip_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """An axis backwards."""
    has_axis(args[0], attrs["axis"])
    return args[0]
