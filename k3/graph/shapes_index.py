"""Shape rules of the primitives with integers and booleans: routing and splicing."""

from collections.abc import Sequence
from dataclasses import replace

from k3.graph.dims import at_most, plus, show
from k3.graph.kinds import Attrs, Type, has_axis, need, real


def gather_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Entries of an axis picked by integers."""
    x, index = args
    axis = attrs["axis"]
    has_axis(x, axis)
    need(
        index.dtype == "int" and index.domain == x.shape[axis],
        f"indices must be integers below the size of axis {axis}, "
        f"{show(x.shape[axis])}",
        "take them from topk of that axis, or assert their range with within",
    )
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return replace(x, shape=shape)


def topk_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """The k largest of the last axis, equal ones by lower index."""
    (a,) = args
    real(a)
    need(bool(a.shape), "it works along the last axis", "a scalar has none")
    k = attrs["k"]
    need(
        k == a.shape[-1]
        or (
            not at_most(plus(a.shape[-1], 1), k) and not (isinstance(k, int) and k < 1)
        ),
        f"k = {show(k)} must be at least 1 and at most {show(a.shape[-1])}",
        "choose fewer",
    )
    return Type((*a.shape[:-1], k), "int", a.shape[-1])


def argsort_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """The last axis from largest to smallest, equal ones by lower index."""
    (a,) = args
    real(a)
    need(bool(a.shape), "it works along the last axis", "a scalar has none")
    return Type(a.shape, "int", a.shape[-1])


def one_hot_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Integers as rows of the identity."""
    (index,) = args
    need(
        index.domain is not None,
        "one_hot takes integers that index an axis",
        "assert their range with within",
    )
    assert index.domain is not None
    return Type((*index.shape, index.domain))


def where_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """One of two branches, entry by entry."""
    choice, yes, no = args
    need(
        choice.dtype == "bool" and choice.shape == yes.shape,
        "the choice must be boolean and of the branches' shape",
        "broadcast it",
    )
    need(yes == no, "both branches must have one type", "broadcast or cast one")
    return yes


def equal_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Integers compared."""
    a, b = args
    need(
        a.dtype == b.dtype == "int" and a.shape == b.shape,
        "equal compares integers of one shape",
        "broadcast one of them",
    )
    return Type(a.shape, "bool")


def less_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Reals compared."""
    a, b = args
    real(a, b)
    need(
        a.shape == b.shape,
        "less compares reals of one shape",
        "broadcast one of them",
    )
    return Type(a.shape, "bool")


def count_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """True as 1, False as 0."""
    need(args[0].dtype == "bool", "count takes booleans", "compare first")
    return Type(args[0].shape, "int")


def before_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """The sum of what comes before, along the last axis."""
    (a,) = args
    need(
        a.dtype == "int" and bool(a.shape),
        "before sums integers along their last axis",
        "count booleans first",
    )
    return Type(a.shape, "int")


def within_rule(args: Sequence[Type], attrs: Attrs) -> Type:
    """Integers that are asserted to index an axis."""
    need(args[0].dtype == "int", "within takes integers", "count or compare first")
    return replace(args[0], domain=attrs["domain"])
