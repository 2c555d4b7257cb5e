"""The shape rule of every primitive: types of the operands to the type of the result.

A rule that refuses raises `Refusal(rule, advice)`; `term.build` adds the shapes, the
primitive and the line. `RULES` is the list of the primitives there are.
"""

from collections.abc import Sequence

from k3.graph import shapes_index, shapes_layout
from k3.graph.dims import Dim, show
from k3.graph.kinds import Attrs, Rule, Type, has_axis, need, real


def _leaf(args: Sequence[Type], attrs: Attrs) -> Type:
    return Type(attrs["shape"], attrs["dtype"], attrs["domain"])


def _unary(args: Sequence[Type], attrs: Attrs) -> Type:
    real(args[0])
    return args[0]


def _binary(args: Sequence[Type], attrs: Attrs) -> Type:
    a, b = args
    need(
        a.dtype == b.dtype != "bool",
        "both operands must be real or both integers",
        "count turns booleans into integers",
    )
    need(
        a.shape == b.shape,
        "both operands must have one shape",
        "broadcast, permute or contract one of them",
    )
    return Type(a.shape, a.dtype)


def _last(args: Sequence[Type], attrs: Attrs) -> Type:
    real(args[0])
    need(bool(args[0].shape), "it works along the last axis", "a scalar has none")
    return args[0]


def _rms_norm(args: Sequence[Type], attrs: Attrs) -> Type:
    x, weight = args
    real(x, weight)
    need(
        len(weight.shape) == 1 and x.shape[-1:] == weight.shape,
        "the weight must have the shape of the last axis",
        "normalise along the axis that the weight scales",
    )
    return x


def _contract(args: Sequence[Type], attrs: Attrs) -> Type:
    real(*args)
    left, arrow, right = attrs["axes"].partition("->")
    groups = left.split(",")
    need(
        bool(arrow) and all(g.isalpha() or not g for g in (*groups, right)),
        f"axes are groups of letters, an arrow and the result: {attrs['axes']!r}",
        'write for example "od,d->o"',
    )
    need(len(groups) == len(args), "one group of letters per operand", left)
    bound: dict[str, Dim] = {}
    for letters, a in zip(groups, args, strict=True):
        need(
            len(letters) == len(a.shape),
            f"{letters!r} must name every axis of its operand",
            "give one letter an axis",
        )
        for letter, dim in zip(letters, a.shape, strict=True):
            need(
                bound.setdefault(letter, dim) == dim,
                f"axis {letter} of {attrs['axes']} must have one size, "
                f"not {show(bound[letter])} and {show(dim)}",
                "contract equal axes, in one order of parts",
            )
    need(
        set(right) <= set(bound) and len(set(right)) == len(right),
        f"the result {right!r} must name axes of the operands once",
        "sum over what it leaves out",
    )
    return Type(tuple(bound[letter] for letter in right))


def _matmul(args: Sequence[Type], attrs: Attrs) -> Type:
    a, b = args
    real(a, b)
    need(
        len(a.shape) == len(b.shape) >= 2 and a.shape[:-2] == b.shape[:-2],
        "both need two axes after one common batch",
        "broadcast the batch first",
    )
    need(
        a.shape[-1] == b.shape[-2],
        f"the inner axes must be equal, not {show(a.shape[-1])} and "
        f"{show(b.shape[-2])}",
        "transpose one of them",
    )
    return Type((*a.shape[:-1], b.shape[-1]))


def _outer(args: Sequence[Type], attrs: Attrs) -> Type:
    real(*args)
    return Type(args[0].shape + args[1].shape)


def _reduce(args: Sequence[Type], attrs: Attrs) -> Type:
    (a,) = args
    real(a)
    for axis in attrs["axes"]:
        has_axis(a, axis)
    kept = tuple(d for i, d in enumerate(a.shape) if i not in attrs["axes"])
    return Type(kept)


RULES: dict[str, Rule] = {
    "input": _leaf,
    "constant": lambda args, attrs: Type((), attrs["dtype"]),
    "size": lambda args, attrs: Type(()),
    "positions": lambda args, attrs: Type((attrs["dim"],)),
    "bilinear": lambda args, attrs: Type((attrs["out"], attrs["table"])),
    "add": _binary,
    "sub": _binary,
    "mul": _binary,
    "div": _binary,
    "neg": _unary,
    "scale": _unary,
    "exp": _unary,
    "log": _unary,
    "sqrt": _unary,
    "tanh": _unary,
    "sigmoid": _unary,
    "silu": _unary,
    "softplus": _unary,
    "gelu": _unary,
    "sin": _unary,
    "cos": _unary,
    "softmax": _last,
    "unit_rms": _last,
    "rms_norm": _rms_norm,
    "l2_norm": _last,
    "contract": _contract,
    "matmul": _matmul,
    "outer": _outer,
    "permute": shapes_layout.permute_rule,
    "reshape": shapes_layout.reshape_rule,
    "broadcast": shapes_layout.broadcast_rule,
    "concat": shapes_layout.concat_rule,
    "slice": shapes_layout.slice_rule,
    "stack": shapes_layout.stack_rule,
    "flip": shapes_layout.flip_rule,
    "sum": _reduce,
    "mean": _reduce,
    "gather": shapes_index.gather_rule,
    "topk": shapes_index.topk_rule,
    "argsort": shapes_index.argsort_rule,
    "one_hot": shapes_index.one_hot_rule,
    "where": shapes_index.where_rule,
    "equal": shapes_index.equal_rule,
    "less": shapes_index.less_rule,
    "count": shapes_index.count_rule,
    "before": shapes_index.before_rule,
    "within": shapes_index.within_rule,
}

# How many operands a primitive takes; the others take one, and these at least one.
ARITY = {
    **dict.fromkeys(("input", "constant", "size", "positions", "bilinear"), 0),
    **dict.fromkeys(("add", "sub", "mul", "div", "rms_norm", "matmul", "outer"), 2),
    **dict.fromkeys(("gather", "equal", "less"), 2),
    "where": 3,
}
MANY = frozenset(("contract", "concat", "stack"))


def accepts(op: str, count: int) -> bool:
    """Whether a primitive takes this many operands."""
    return count >= 1 if op in MANY else count == ARITY.get(op, 1)
