"""The primitives as functions. Each has a shape rule, an evaluation, a LaTeX form, a
JSON form and a torch line, one entry each in `shapes`, `evaluate`, `latex`,
`attributes` and `verify.lower`.
"""

from k3.graph.dims import Dim, Shape, parse, parse_shape, times
from k3.graph.kinds import Dtype
from k3.graph.term import Number, Term, build, exact
from k3.spec import norm


def real(name: str, shape: str) -> Term:
    """An input of reals; the shape as text, "H, K, V" or "" for a scalar."""
    return _input(name, parse_shape(shape), "real", None)


def integer(name: str, shape: str, below: str | None = None) -> Term:
    """An input of integers, each at least 0 and below a dimension if one is named."""
    domain = None if below is None else parse(below)
    return _input(name, parse_shape(shape), "int", domain)


def _input(name: str, shape: Shape, dtype: Dtype, domain: Dim | None) -> Term:
    return build("input", (), name=name, shape=shape, dtype=dtype, domain=domain)


def size(dim: Dim) -> Term:
    """The size of a dimension as a real scalar."""
    return build("size", (), dim=dim)


def positions(dim: Dim) -> Term:
    """0, 1, 2, ... along a dimension, as reals."""
    return build("positions", (), dim=dim)


def bilinear(out: Dim, table: Dim) -> Term:
    """[out table]: the weights with which a table of positions is stretched."""
    return build("bilinear", (), out=out, table=table)


def scale(x: Term, factor: Number) -> Term:
    """A number times x."""
    return build("scale", (x,), factor=exact(factor))


def exp(x: Term) -> Term:
    """Exponential, entry by entry."""
    return build("exp", (x,))


def log(x: Term) -> Term:
    """Natural logarithm, entry by entry."""
    return build("log", (x,))


def sqrt(x: Term) -> Term:
    """Square root, entry by entry."""
    return build("sqrt", (x,))


def tanh(x: Term) -> Term:
    """Hyperbolic tangent, entry by entry."""
    return build("tanh", (x,))


def sigmoid(x: Term) -> Term:
    """1 / (1 + e^-x), entry by entry."""
    return build("sigmoid", (x,))


def silu(x: Term) -> Term:
    """x sigmoid(x), entry by entry."""
    return build("silu", (x,))


def softplus(x: Term) -> Term:
    """log(1 + e^x), entry by entry."""
    return build("softplus", (x,))


def gelu(x: Term, kind: str) -> Term:
    """GELU by "tanh" or "erf", entry by entry."""
    return build("gelu", (x,), kind=kind)


def sin(x: Term) -> Term:
    """Sine, entry by entry."""
    return build("sin", (x,))


def cos(x: Term) -> Term:
    """Cosine, entry by entry."""
    return build("cos", (x,))


def softmax(x: Term) -> Term:
    """Softmax along the last axis."""
    return build("softmax", (x,))


def unit_rms(x: Term, eps: Number = norm.EPS) -> Term:
    """x / sqrt(mean x^2 + eps) along the last axis."""
    return build("unit_rms", (x,), eps=exact(eps))


def rms_norm(x: Term, weight: Term, eps: Number = norm.EPS) -> Term:
    """unit_rms times a weight of the last axis."""
    return build("rms_norm", (x, weight), eps=exact(eps))


def l2_norm(x: Term, eps: Number = norm.L2_EPS) -> Term:
    """x / sqrt(sum x^2 + eps) along the last axis."""
    return build("l2_norm", (x,), eps=exact(eps))


def contract(axes: str, *args: Term) -> Term:
    """Products of entries, summed over the letters that the result leaves out.

    "hk,hkv->hv": for each h and v the sum over k. A letter is one axis with one size.
    """
    return build("contract", args, axes=axes.replace(" ", ""))


def linear(W: Term, x: Term) -> Term:
    """W x with W [out in]: the last axis of x is mapped, the others kept."""
    others = "abcefghijklmn"[: len(x.shape) - 1]
    return build("contract", (W, x), axes=f"oz,{others}z->{others}o")


def matmul(a: Term, b: Term) -> Term:
    """[... m k] and [... k n] to [... m n], with one common batch."""
    return build("matmul", (a, b))


def outer(a: Term, b: Term) -> Term:
    """Every entry of a times every entry of b, a's axes first."""
    return build("outer", (a, b))


def permute(x: Term, *order: int) -> Term:
    """The axes in another order."""
    return build("permute", (x,), order=order)


def reshape(x: Term, *shape: Dim) -> Term:
    """Axes split or merged, row-major; the order of the factors stays."""
    return build("reshape", (x,), shape=tuple(shape))


def flatten(x: Term) -> Term:
    """All axes as one."""
    return reshape(x, times(*x.shape))


def concat(*parts: Term, axis: int = 0) -> Term:
    """Parts side by side along an axis."""
    return build("concat", parts, axis=axis)


def append(rows: Term, row: Term) -> Term:
    """A matrix with one more row at the end."""
    return concat(rows, reshape(row, 1, *row.shape))


def cut(x: Term, start: Dim, size: Dim, axis: int = 0) -> Term:
    """Rows start to start + size of an axis."""
    return build("slice", (x,), axis=axis, start=start, size=size)


def pick(x: Term, row: int, axis: int = 0) -> Term:
    """One row of an axis, which goes away."""
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return reshape(cut(x, row, 1, axis), *shape)


def stack(*items: Term, axis: int = 0) -> Term:
    """Items along a new axis."""
    return build("stack", items, axis=axis)


def flip(x: Term, axis: int = 0) -> Term:
    """An axis backwards."""
    return build("flip", (x,), axis=axis)


def total(x: Term, *axes: int) -> Term:
    """The sum over some axes."""
    return build("sum", (x,), axes=axes)


def mean(x: Term, *axes: int) -> Term:
    """The average over some axes."""
    return build("mean", (x,), axes=axes)


def gather(x: Term, index: Term, axis: int = 0) -> Term:
    """Rows of an axis picked by integers; the axis becomes the integers' axes."""
    return build("gather", (x, index), axis=axis)


def topk(scores: Term, k: Dim) -> Term:
    """Where the k largest of the last axis are, largest first, ties by lower index."""
    return build("topk", (scores,), k=k)


def argsort(scores: Term) -> Term:
    """The last axis from largest to smallest, ties by lower index."""
    return build("argsort", (scores,))


def one_hot(index: Term) -> Term:
    """Integers as rows of the identity of the axis that they index."""
    return build("one_hot", (index,))


def where(choice: Term, yes: Term, no: Term) -> Term:
    """yes where the choice is true, else no; the choice's axes are the leading ones."""
    axes = tuple(range(len(choice.shape)))
    if choice.shape != yes.shape:
        choice = build("broadcast", (choice,), shape=yes.shape, axes=axes)
    return build("where", (choice, yes, no))


def equal(a: Term, b: Term) -> Term:
    """Whether integers are equal."""
    return build("equal", (a, b))


def less(a: Term, b: Term) -> Term:
    """Whether a < b, reals entry by entry."""
    return build("less", (a, b))


def count(choice: Term) -> Term:
    """True as 1 and False as 0."""
    return build("count", (choice,))


def before(x: Term) -> Term:
    """For each integer the sum of those before it along the last axis."""
    return build("before", (x,))


def within(index: Term, domain: Dim) -> Term:
    """The same integers, asserted to index an axis of this size."""
    return build("within", (index,), domain=domain)
