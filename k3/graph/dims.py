"""Symbolic dimensions: integers, names, and ordered sums and products of them.

Order is kept on purpose: an axis that holds heads of keys ("H*K") is not one that
holds keys of heads ("K*H"), and [past | 1] is not [1 | past], although the sizes agree.
Text and dimensions convert both ways: `parse("M*(n+r)")`, `show(...)`.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from k3.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Compound:
    """A sum (parts side by side on an axis) or a product (axes made one, row-major)."""

    op: Literal["+", "*"]
    parts: tuple["Dim", ...]

    def __str__(self) -> str:
        return show(self)


Dim = int | str | Compound
Shape = tuple[Dim, ...]
Sizes = Mapping[str, int]
Polynomial = Mapping[tuple[str, ...], int]

_UNIT = {"+": 0, "*": 1}


def _compound(op: Literal["+", "*"], dims: Iterable[Dim]) -> Dim:
    """Nested parts flattened, neighbouring integers joined, units dropped."""
    flat: list[Dim] = []
    for dim in dims:
        nested = isinstance(dim, Compound) and dim.op == op
        for part in dim.parts if nested else (dim,):  # type: ignore[union-attr]
            if isinstance(part, int) and flat and isinstance(flat[-1], int):
                flat[-1] = flat[-1] + part if op == "+" else flat[-1] * part
            else:
                flat.append(part)
    flat = [part for part in flat if part != _UNIT[op]]
    if len(flat) < 2:
        return flat[0] if flat else _UNIT[op]
    return Compound(op, tuple(flat))


def plus(*dims: Dim) -> Dim:
    """The axis that holds these axes side by side, in this order."""
    return _compound("+", dims)


def times(*dims: Dim) -> Dim:
    """The axis that these axes flatten to, row-major."""
    return _compound("*", dims)


def show(dim: Dim) -> str:
    """A dimension as text that `parse` reads back."""
    if not isinstance(dim, Compound):
        return str(dim)
    texts = [
        f"({show(part)})"
        if isinstance(part, Compound) and dim.op == "*"
        else show(part)
        for part in dim.parts
    ]
    return dim.op.join(texts)


def show_shape(shape: Sequence[Dim]) -> str:
    """A shape as text: [H, n+r]."""
    return "[" + ", ".join(show(dim) for dim in shape) + "]"


def parse(text: str) -> Dim:
    """A dimension from text: names, integers, + and *."""
    try:
        return _read(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError) as wrong:
        raise ShapeError(
            f"a dimension is made of names, integers, + and *: got {text!r}; "
            f"write for example H*(n+r)"
        ) from wrong


def parse_shape(text: str) -> Shape:
    """A shape from text: dimensions with commas between, nothing for a scalar."""
    return tuple(parse(part) for part in text.split(",")) if text.strip() else ()


def _read(node: ast.expr) -> Dim:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=int(number)) if number >= 0:
            return number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return plus(_read(left), _read(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return times(_read(left), _read(right))
    raise ValueError(ast.dump(node))


def names(dims: Iterable[Dim]) -> Iterator[str]:
    """The names in some dimensions, as often as they occur."""
    for dim in dims:
        if isinstance(dim, str):
            yield dim
        elif isinstance(dim, Compound):
            yield from names(dim.parts)


def value(dim: Dim, sizes: Sizes) -> int:
    """The size of a dimension when its names have sizes."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        if dim not in sizes:
            raise ShapeError(
                f"every dimension needs a size: {dim} has none; inputs fix those in "
                f"their shapes, give the others as sizes={{{dim!r}: ...}}"
            )
        return sizes[dim]
    parts = [value(part, sizes) for part in dim.parts]
    return sum(parts) if dim.op == "+" else prod(parts)


def atoms(shape: Iterable[Dim]) -> Shape:
    """The factors of a shape in order, neighbouring integers multiplied together.

    Two shapes reshape into each other without moving an axis iff these are equal.
    """
    flat = times(*shape)
    if isinstance(flat, Compound) and flat.op == "*":
        return flat.parts
    return () if flat == 1 else (flat,)


def polynomial(dim: Dim) -> Polynomial:
    """The size as a polynomial in the names: sorted monomials with coefficients."""
    if isinstance(dim, int):
        return Counter({(): dim} if dim else {})
    if isinstance(dim, str):
        return Counter({(dim,): 1})
    if dim.op == "+":
        total: Counter[tuple[str, ...]] = Counter()
        for part in dim.parts:
            total.update(polynomial(part))
        return total
    out: Counter[tuple[str, ...]] = Counter({(): 1})
    for part in dim.parts:
        step: Counter[tuple[str, ...]] = Counter()
        for one, a in out.items():
            for other, b in polynomial(part).items():
                step[tuple(sorted(one + other))] += a * b
        out = step
    return out


def at_most(small: Dim, large: Dim) -> bool:
    """Whether small <= large for all sizes, seen from the coefficients alone."""
    rest = Counter(polynomial(large))
    rest.subtract(polynomial(small))
    return all(count >= 0 for count in rest.values())


def solve(dim: Dim, size: int, sizes: dict[str, int]) -> bool:
    """Fix the one unknown name of a dimension from its size; False if it cannot."""
    unknown = set(names([dim])) - sizes.keys()
    if len(unknown) != 1:
        return False
    (name,) = unknown
    # The sizes of one name grow with it, so the first that fits is the only one.
    for trial in range(size + 1):
        if value(dim, {**sizes, name: trial}) == size:
            sizes[name] = trial
            return True
    return False
