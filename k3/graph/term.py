"""A term: one node of a typed tensor program, made by `build` alone.

Nodes are immutable and compared by identity; a node used twice is shared, so a program
is a graph, not a tree. `Block` names several outputs over common inputs.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from k3.errors import ShapeError
from k3.graph import attributes, kinds, shapes
from k3.graph.dims import Shape, names
from k3.graph.kinds import Dtype

Number = int | float | Fraction

_PACKAGE = Path(__file__).resolve().parent
_ROOT = _PACKAGE.parents[1]
# Frames of these files are ours; the line a reader wants is the caller's.
_OWN = frozenset(
    str(_PACKAGE / f"{name}.py") for name in ("term", "primitives", "inputs")
)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A primitive on terms, its type, the line that built it and an optional name."""

    op: str
    args: tuple["Term", ...]
    attrs: Mapping[str, Any]
    type: kinds.Type
    line: str
    label: str = ""

    @property
    def shape(self) -> Shape:
        """The symbolic dimensions, outermost first."""
        return self.type.shape

    @property
    def dtype(self) -> Dtype:
        """real, int or bool."""
        return self.type.dtype

    def __add__(self, other: "Term | Number") -> "Term":
        return combine("add", self, other)

    def __radd__(self, other: Number) -> "Term":
        return combine("add", other, self)

    def __sub__(self, other: "Term | Number") -> "Term":
        return combine("sub", self, other)

    def __rsub__(self, other: Number) -> "Term":
        return combine("sub", other, self)

    def __mul__(self, other: "Term | Number") -> "Term":
        return combine("mul", self, other)

    def __rmul__(self, other: Number) -> "Term":
        return combine("mul", other, self)

    def __truediv__(self, other: "Term | Number") -> "Term":
        return combine("div", self, other)

    def __neg__(self) -> "Term":
        return build("neg", (self,))

    def __bool__(self) -> bool:
        raise ShapeError(
            f"a term has no truth value: got {self.op} {self.type}; "
            f"choose with where, not with if"
        )

    def __repr__(self) -> str:
        return f"<{self.label or self.op} {self.type} {self.line}>"


def build(op: str, args: Sequence[Term], **attrs: Any) -> Term:
    """Make a node; ShapeError if the operands do not fit, with op, shapes and line."""
    rule = shapes.RULES[op]
    assert shapes.accepts(op, len(args)), (op, len(args))
    line = _line()
    types = [a.type for a in args]
    try:
        made = rule(types, attrs)
    except kinds.Refusal as refusal:
        why, advice = refusal.args
        came = " and ".join(map(str, types)) or "nothing"
        raise ShapeError(f"{op}: {why}: got {came} at {line}; {advice}") from None
    return Term(op, tuple(args), MappingProxyType(attrs), made, line)


def exact(value: Number) -> Fraction:
    """A number as a fraction; a float means the decimal that it is written as."""
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def constant(value: Number, dtype: Dtype = "real") -> Term:
    """A number as a scalar node."""
    return build("constant", (), value=exact(value), dtype=dtype)


def spread(x: Term, shape: Shape, *axes: int) -> Term:
    """x repeated to a shape in which its axes are `axes`, in order; x itself if so."""
    if x.shape == shape:
        return x
    return build("broadcast", (x,), shape=shape, axes=axes)


def combine(op: str, a: Term | Number, b: Term | Number) -> Term:
    """An entrywise operation; numbers and scalars are repeated to the other's shape."""
    if op in ("mul", "div") and isinstance(a, Term) and not isinstance(b, Term):
        factor = exact(b) if op == "mul" else 1 / exact(b)
        return build("scale", (a,), factor=factor)
    if op == "mul" and not isinstance(a, Term):
        return combine(op, b, a)
    dtype = next(t.dtype for t in (a, b) if isinstance(t, Term))
    left = a if isinstance(a, Term) else constant(a, dtype)
    right = b if isinstance(b, Term) else constant(b, dtype)
    if not left.shape:
        left = spread(left, right.shape)
    if not right.shape:
        right = spread(right, left.shape)
    return build(op, (left, right))


def let(label: str, value: Term) -> Term:
    """The same node with a name, for rendering, mutants and proofs.

    An input has its own name and stays as it is.
    """
    if value.op == "input":
        return value
    return replace(value, label=label)


def ordered(terms: Iterable[Term]) -> list[Term]:
    """All nodes below some terms, operands first, each once."""
    out: list[Term] = []
    seen: set[int] = set()
    stack: list[tuple[Term, bool]] = [(t, False) for t in reversed(list(terms))]
    while stack:
        node, done = stack.pop()
        if done:
            out.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((a, False) for a in reversed(node.args) if id(a) not in seen)
    return out


@dataclass(frozen=True)
class Block:
    """Named outputs over named inputs: one packed step of the model."""

    name: str
    says: str
    outputs: Mapping[str, Term]

    @cached_property
    def nodes(self) -> list[Term]:
        """All nodes, operands first, each once."""
        return ordered(self.outputs.values())

    @cached_property
    def inputs(self) -> dict[str, Term]:
        """The input nodes by name, in the order of first use."""
        found: dict[str, Term] = {}
        for node in self.nodes:
            if node.op == "input" and found.setdefault(_name(node), node) is not node:
                raise ShapeError(
                    f"an input has one node: {_name(node)!r} was made at "
                    f"{found[_name(node)].line} and at {node.line}; share the first"
                )
        return found

    @cached_property
    def dims(self) -> list[str]:
        """The names of all dimensions, in the order of first use."""
        used: dict[str, None] = {}
        for node in self.nodes:
            used.update(dict.fromkeys(_dims(node)))
        return list(used)


def remake(node: Term, args: Sequence[Term]) -> Term:
    """The node on other operands, typed anew; the same node if they are the same."""
    if all(a is b for a, b in zip(args, node.args, strict=True)):
        return node
    made = build(node.op, args, **node.attrs)
    return replace(made, label=node.label, line=node.line)


def rebuild(block: Block, change: Callable[[Term, Term], Term]) -> Block:
    """The block with every node replaced by change(old node, node on new operands)."""
    made: dict[int, Term] = {}
    for node in block.nodes:
        made[id(node)] = change(node, remake(node, [made[id(a)] for a in node.args]))
    outputs = {name: made[id(t)] for name, t in block.outputs.items()}
    return Block(block.name, block.says, outputs)


def _name(node: Term) -> str:
    return str(node.attrs["name"])


def _dims(node: Term) -> Iterator[str]:
    yield from names(node.shape)
    yield from names(attributes.dims(node.op, node.attrs))


def _line() -> str:
    """file:line of the nearest caller outside the files that make nodes."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    name = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path.name
    return f"{name}:{frame.f_lineno}"


def _is_own(frame: FrameType) -> bool:
    """Whether a frame makes nodes for others, or checks their argument types."""
    name = frame.f_code.co_filename
    wraps = frame.f_globals.get("__name__", "").partition(".")[0] == "jaxtyping"
    return name in _OWN or name.startswith("<@beartype") or wraps
