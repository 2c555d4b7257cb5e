"""The value of a graph on numpy arrays: float64, fractions or any carrier of spec.ops.

Dimensions get their sizes from the inputs; those that no input shows (the k of a top-k)
are given. Each primitive has one rule in `RULES`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from k3.errors import ShapeError
from k3.graph.bind import bind
from k3.graph.dims import Dim, Sizes, value
from k3.graph.term import Block, Term
from k3.spec import ops, vision_position

Array = Any


@dataclass(frozen=True, slots=True)
class Call:
    """One node at work: operands, attributes, sizes, and an array of the carrier."""

    node: Term
    args: Sequence[Array]
    sizes: Sizes
    like: Array

    def attr(self, name: str) -> Any:
        """An attribute of the primitive."""
        return self.node.attrs[name]

    def size(self, dim: Dim) -> int:
        """The size of a dimension."""
        return value(dim, self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the result."""
        return tuple(self.size(d) for d in self.node.shape)

    def lift(self, number: Fraction | int) -> Array:
        """A constant on the carrier."""
        return ops.lift(self.like, number)


def evaluate(
    graph: Block | Term, env: Mapping[str, Array], sizes: Sizes | None = None
) -> Any:
    """The outputs of a block by name, or the value of a term.

    env maps input names to arrays; names that the graph does not read are ignored, so
    a whole checkpoint may be given. ShapeError if an input is missing or does not fit.
    """
    block = graph if isinstance(graph, Block) else Block("term", "", {"": graph})
    nodes = block.nodes
    arrays = {n: np.asarray(env[n]) for n in block.inputs if n in env}
    known = bind(block, {n: a.shape for n, a in arrays.items()}, sizes or {})
    like = carrier(arrays.values())
    values: dict[int, Array] = {}
    for node in nodes:
        if node.op == "input":
            values[id(node)] = check_range(node, arrays[node.attrs["name"]], known)
        else:
            call = Call(node, [values[id(a)] for a in node.args], known, like)
            values[id(node)] = as_array(RULES[node.op](call), node, like)
    outputs = {name: values[id(t)] for name, t in block.outputs.items()}
    return outputs if isinstance(graph, Block) else outputs[""]


def carrier(arrays: Any) -> Array:
    """An array whose entries show the carrier: the first real input that has any."""
    for array in arrays:
        if array.size and array.dtype.kind in "fO":
            return array
    return np.zeros(1)


def as_array(result: Array, node: Term, like: Array) -> Array:
    """A result as an array of the node's kind, also when numpy made it a scalar."""
    kind = {"real": like.dtype, "int": np.int64, "bool": np.bool_}[node.dtype]
    if isinstance(result, np.ndarray):
        return result.astype(kind, copy=False)
    out = np.empty((), dtype=kind)
    out[()] = result
    return out


def check_range(node: Term, array: Array, sizes: Sizes) -> Array:
    """Integers that index an axis, refused when they are outside of it."""
    domain = node.type.domain
    if domain is None or not array.size:
        return array
    bound = value(domain, sizes)
    if array.min() < 0 or array.max() >= bound:
        raise ShapeError(
            f"{node.attrs.get('name', node.op)} must lie in 0..{bound - 1}: got "
            f"{array.min()}..{array.max()} at {node.line}; give indices of that axis"
        )
    return array


def _unit_rms(call: Call) -> Array:
    x = call.args[0]
    mean_square = ops.mean(x * x, keep=True)
    return x / ops.sqrt(mean_square + call.lift(call.attr("eps")))


def _l2_norm(call: Call) -> Array:
    x = call.args[0]
    square = ops.total(x * x, keep=True)
    return x / ops.sqrt(square + call.lift(call.attr("eps")))


def _gelu(call: Call) -> Array:
    x = call.args[0]
    if call.attr("kind") == "erf":
        inner = ops.erf(x / ops.sqrt(call.lift(2)))
    else:
        cubic = x + call.lift(Fraction("0.044715")) * x * x * x
        inner = ops.tanh(ops.sqrt(call.lift(2) / ops.pi(call.like)) * cubic)
    return x * (1 + inner) / call.lift(2)


def _bilinear(call: Call) -> Array:
    out, table = call.shape
    rows = [[Fraction(0)] * table for _ in range(out)]
    for i in range(out):
        low, high, share = vision_position.source(i, out, table)
        rows[i][low] += 1 - share
        rows[i][high] += share
    return ops.matrix(call.like, [[call.lift(w) for w in row] for row in rows])


def _positions(call: Call) -> Array:
    (length,) = call.shape
    return ops.matrix(call.like, [[call.lift(i) for i in range(length)]])[0]


def _broadcast(call: Call) -> Array:
    x, axes, rank = call.args[0], call.attr("axes"), len(call.shape)
    shape = [1] * rank
    for axis, length in zip(axes, x.shape, strict=True):
        shape[axis] = length
    return np.broadcast_to(x.reshape(shape), call.shape)


def _slice(call: Call) -> Array:
    start = call.size(call.attr("start"))
    rows = slice(start, start + call.size(call.attr("size")))
    return call.args[0][(slice(None),) * call.attr("axis") + (rows,)]


def _order(call: Call) -> Array:
    x = call.args[0]
    rows = [ops.order(row) for row in x.reshape(-1, x.shape[-1])]
    return np.array(rows, dtype=np.int64).reshape(x.shape)


def _topk(call: Call) -> Array:
    k, width = call.size(call.attr("k")), call.args[0].shape[-1]
    if not 1 <= k <= width:
        raise ShapeError(
            f"topk: k must be at least 1 and at most the width: got {k} of {width} at "
            f"{call.node.line}; give another size"
        )
    return _order(call)[..., :k]


def _where(call: Call) -> Array:
    return np.where(*call.args)


def _contract(call: Call) -> Array:
    return np.einsum(call.attr("axes"), *call.args)


def _sum(call: Call) -> Array:
    return call.args[0].sum(axis=call.attr("axes"))


def _mean(call: Call) -> Array:
    x = call.args[0]
    count = np.prod([x.shape[axis] for axis in call.attr("axes")], dtype=int)
    return _sum(call) / call.lift(int(count))


def _before(call: Call) -> Array:
    return np.cumsum(call.args[0], axis=-1) - call.args[0]


RULES: dict[str, Callable[[Call], Array]] = {
    "constant": lambda c: (
        c.lift(c.attr("value")) if c.node.dtype == "real" else int(c.attr("value"))
    ),
    "size": lambda c: c.lift(c.size(c.attr("dim"))),
    "positions": _positions,
    "bilinear": _bilinear,
    "add": lambda c: c.args[0] + c.args[1],
    "sub": lambda c: c.args[0] - c.args[1],
    "mul": lambda c: c.args[0] * c.args[1],
    "div": lambda c: c.args[0] / c.args[1],
    "neg": lambda c: -c.args[0],
    "scale": lambda c: c.args[0] * c.lift(c.attr("factor")),
    "exp": lambda c: ops.exp(c.args[0]),
    "log": lambda c: ops.log(c.args[0]),
    "sqrt": lambda c: ops.sqrt(c.args[0]),
    "tanh": lambda c: ops.tanh(c.args[0]),
    "sigmoid": lambda c: ops.sigmoid(c.args[0]),
    "silu": lambda c: c.args[0] * ops.sigmoid(c.args[0]),
    "softplus": lambda c: ops.softplus(c.args[0]),
    "gelu": _gelu,
    "sin": lambda c: ops.sin(c.args[0]),
    "cos": lambda c: ops.cos(c.args[0]),
    "softmax": lambda c: ops.softmax(c.args[0]),
    "unit_rms": _unit_rms,
    "rms_norm": lambda c: _unit_rms(c) * c.args[1],
    "l2_norm": _l2_norm,
    "contract": _contract,
    "matmul": lambda c: c.args[0] @ c.args[1],
    "outer": lambda c: np.multiply.outer(c.args[0], c.args[1]),
    "permute": lambda c: np.transpose(c.args[0], c.attr("order")),
    "reshape": lambda c: c.args[0].reshape(c.shape),
    "broadcast": _broadcast,
    "concat": lambda c: np.concatenate(c.args, axis=c.attr("axis")),
    "slice": _slice,
    "stack": lambda c: np.stack(c.args, axis=c.attr("axis")),
    "flip": lambda c: np.flip(c.args[0], axis=c.attr("axis")),
    "sum": _sum,
    "mean": _mean,
    "gather": lambda c: np.take(c.args[0], c.args[1], axis=c.attr("axis")),
    "topk": _topk,
    "argsort": _order,
    "one_hot": lambda c: np.equal.outer(c.args[0], np.arange(c.shape[-1])) * c.lift(1),
    "where": _where,
    "equal": lambda c: c.args[0] == c.args[1],
    "less": lambda c: c.args[0] < c.args[1],
    "count": lambda c: c.args[0].astype(np.int64),
    "before": _before,
    "within": lambda c: check_range(c.node, c.args[0], c.sizes),
}
