"""What each primitive means at one place: the rules from terms to polynomials.

Those that move entries or pick them are in `denote_layout`.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from k3.graph.symbolic import denote_layout, normal
from k3.graph.symbolic.index import Place, Undecided
from k3.graph.symbolic.normal import Poly, add, function, mul, over, scale, size, sub
from k3.graph.symbolic.tensor import Entry, Tensor, bilinear, leaf, number
from k3.graph.term import Term, ordered

Rule = Callable[[Term, Sequence[Tensor]], Entry]


def denote(
    terms: Sequence[Term], known: Mapping[int, Tensor] | None = None
) -> list[Tensor]:
    """The tensors of some terms; entries that are asked for twice are kept.

    `known` gives the tensors of nodes, by id, that are not to be looked into.
    """
    made: dict[int, Tensor] = dict(known or {})
    for node in ordered(terms):
        if id(node) in made:
            continue
        if node.op not in RULES:
            raise Undecided(f"{node.op} at {node.line} has no symbolic reading")
        entry = RULES[node.op](node, [made[id(a)] for a in node.args])
        made[id(node)] = Tensor(node.shape, _kept(entry))
    return [made[id(t)] for t in terms]


def _kept(entry: Entry) -> Entry:
    known: dict[Any, Any] = {}

    def at(places: tuple[Place, ...]) -> Any:
        if places not in known:
            known[places] = entry(places)
        return known[places]

    return at


def _input(node: Term, args: Sequence[Tensor]) -> Entry:
    if node.dtype != "real":
        raise Undecided(f"input {node.attrs['name']} is not real")
    return leaf(node.attrs["name"], node.shape).at


def _entrywise(op: Callable[..., Poly]) -> Rule:
    return lambda node, args: lambda at: op(*(a.at(at) for a in args))


def _function(name: str) -> Rule:
    return _entrywise(lambda *xs: function(name, *xs))


def _div(a: Poly, b: Poly) -> Poly:
    return mul(a, function("inv", b))


def _scale(node: Term, args: Sequence[Tensor]) -> Entry:
    return lambda at: scale(args[0].at(at), node.attrs["factor"])


def _gelu(node: Term, args: Sequence[Tensor]) -> Entry:
    return lambda at: function("gelu_" + node.attrs["kind"], args[0].at(at))


def _softmax(node: Term, args: Sequence[Tensor]) -> Entry:
    last = node.shape[-1]

    def at(places: tuple[Place, ...]) -> Poly:
        rest = places[:-1]
        bottom = over(last, lambda i: function("exp", args[0].at((*rest, i))))
        return _div(function("exp", args[0].at(places)), bottom)

    return at


def _norm(node: Term, args: Sequence[Tensor], mean: bool) -> Entry:
    x, last = args[0], node.shape[-1]
    eps = normal.constant(node.attrs["eps"])

    def at(places: tuple[Place, ...]) -> Poly:
        rest = places[:-1]
        square = over(last, lambda i: mul(x.at((*rest, i)), x.at((*rest, i))))
        inside = _div(square, size(last)) if mean else square
        out = _div(x.at(places), function("sqrt", add(inside, eps)))
        return mul(out, args[1].at(places[-1:])) if len(args) > 1 else out

    return at


def _contract(node: Term, args: Sequence[Tensor]) -> Entry:
    left, right = node.attrs["axes"].split("->")
    groups = left.split(",")
    dims = {
        x: d
        for g, a in zip(groups, args, strict=True)
        for x, d in zip(g, a.shape, strict=True)
    }
    summed = [x for x in dims if x not in right]

    def product(at: dict[str, Place]) -> Poly:
        out = normal.constant(1)
        for group, a in zip(groups, args, strict=True):
            out = mul(out, a.at(tuple(at[x] for x in group)))
        return out

    def sums(rest: Sequence[str], at: dict[str, Place]) -> Poly:
        if not rest:
            return product(at)
        return over(dims[rest[0]], lambda i: sums(rest[1:], {**at, rest[0]: i}))

    return lambda places: sums(summed, dict(zip(right, places, strict=True)))


def _matmul(node: Term, args: Sequence[Tensor]) -> Entry:
    a, b = args
    inner = a.shape[-1]
    return lambda at: over(
        inner, lambda i: mul(a.at((*at[:-1], i)), b.at((*at[:-2], i, at[-1])))
    )


def _outer(node: Term, args: Sequence[Tensor]) -> Entry:
    a, b = args
    cut = len(a.shape)
    return lambda at: mul(a.at(at[:cut]), b.at(at[cut:]))


def _sum(node: Term, args: Sequence[Tensor], mean: bool) -> Entry:
    shape, axes = args[0].shape, node.attrs["axes"]

    def sums(rest: Sequence[int], at: dict[int, Place]) -> Poly:
        if not rest:
            entry: Poly = args[0].at(tuple(at[i] for i in range(len(shape))))
            return entry
        return over(shape[rest[0]], lambda i: sums(rest[1:], {**at, rest[0]: i}))

    def entry(places: tuple[Place, ...]) -> Poly:
        kept = [i for i in range(len(shape)) if i not in axes]
        out: Poly = sums(axes, dict(zip(kept, places, strict=True)))
        for axis in axes if mean else ():
            out = _div(out, size(shape[axis]))
        return out

    return entry


RULES: dict[str, Rule] = {
    "input": _input,
    "constant": lambda node, args: lambda at: normal.constant(node.attrs["value"]),
    "size": lambda node, args: lambda at: size(node.attrs["dim"]),
    "positions": lambda node, args: lambda at: number(node.attrs["dim"], at[0]),
    "bilinear": lambda node, args: bilinear(*node.shape).at,
    "add": _entrywise(add),
    "sub": _entrywise(sub),
    "mul": _entrywise(mul),
    "div": _entrywise(_div),
    "neg": _entrywise(lambda x: scale(x, Fraction(-1))),
    "scale": _scale,
    **{n: _function(n) for n in ("exp", "log", "sqrt", "tanh", "sigmoid")},
    **{n: _function(n) for n in ("silu", "softplus", "sin", "cos")},
    "gelu": _gelu,
    "softmax": _softmax,
    "unit_rms": lambda node, args: _norm(node, args, True),
    "rms_norm": lambda node, args: _norm(node, args, True),
    "l2_norm": lambda node, args: _norm(node, args, False),
    "contract": _contract,
    "matmul": _matmul,
    "outer": _outer,
    "permute": denote_layout.permute_entry,
    "reshape": denote_layout.reshape_entry,
    "broadcast": denote_layout.broadcast_entry,
    "concat": denote_layout.concat_entry,
    "slice": denote_layout.slice_entry,
    "stack": denote_layout.stack_entry,
    "flip": denote_layout.flip_entry,
    "sum": lambda node, args: _sum(node, args, False),
    "mean": lambda node, args: _sum(node, args, True),
    "topk": denote_layout.topk_entry,
    "gather": denote_layout.gather_entry,
    "one_hot": denote_layout.one_hot_entry,
}
