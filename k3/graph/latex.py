"""LaTeX of a graph: one rule for each primitive, one line for each named node."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from k3.graph.dims import Compound, Dim
from k3.graph.term import Block, Term

Rule = Callable[[Term, Sequence[str]], str]


def dim(d: Dim) -> str:
    """A dimension: H, n + r, H V."""
    if not isinstance(d, Compound):
        text = str(d)
        return text if len(text) == 1 or text.isdigit() else f"{text[0]}_{{{text[1:]}}}"
    parts = [
        f"({dim(x)})" if isinstance(x, Compound) and d.op == "*" else dim(x)
        for x in d.parts
    ]
    return " + ".join(parts) if d.op == "+" else r" {\cdot} ".join(parts)


def word(text: str) -> str:
    """A name in upright letters, its special characters escaped."""
    return r"\mathrm{" + text.replace("_", r"\_") + "}"


def number(value: Fraction) -> str:
    """An exact number: 4, 1/4 as a fraction, 1e-20 as a power of ten."""
    if value.denominator == 1:
        return str(value)
    digits = len(str(value.denominator)) - 1
    if value.numerator == 1 and value.denominator == 10**digits and digits > 1:
        return f"10^{{-{digits}}}"
    return rf"\tfrac{{{value.numerator}}}{{{value.denominator}}}"


def call(name: str) -> Rule:
    """A primitive written as a function of its operands."""
    return lambda node, args: rf"{name}\left({', '.join(args)}\right)"


def _constant(node: Term, args: Sequence[str]) -> str:
    return number(node.attrs["value"])


def _scale(node: Term, args: Sequence[str]) -> str:
    factor = node.attrs["factor"]
    if factor.numerator == 1 and factor.denominator != 1:
        return rf"\frac{{{args[0]}}}{{{factor.denominator}}}"
    return rf"{number(factor)} \, {_closed(node.args[0], args[0])}"


def _contract(node: Term, args: Sequence[str]) -> str:
    left, right = node.attrs["axes"].split("->")
    groups = left.split(",")
    factors = [
        _indexed(a, text, letters)
        for a, text, letters in zip(node.args, args, groups, strict=True)
    ]
    summed = [x for x in dict.fromkeys(left.replace(",", "")) if x not in right]
    sign = rf"\sum_{{{' '.join(summed)}}} " if summed else ""
    body = sign + r" \, ".join(factors)
    return body if not right else rf"\big[ {body} \big]_{{{right}}}"


def _indexed(node: Term, text: str, letters: str) -> str:
    return f"{_closed(node, text)}_{{{letters}}}" if letters else text


def _closed(node: Term, text: str) -> str:
    simple = node.label or node.op in ("input", "constant", "size")
    return text if simple else rf"\left({text}\right)"


def _infix(sign: str) -> Rule:
    return lambda node, args: sign.join(args)


def _product(node: Term, args: Sequence[str]) -> str:
    sides = [_closed(a, t) for a, t in zip(node.args, args, strict=True)]
    return r" \odot ".join(sides)


def _sub(node: Term, args: Sequence[str]) -> str:
    return f"{args[0]} - {_closed(node.args[1], args[1])}"


def _permute(node: Term, args: Sequence[str]) -> str:
    order = " ".join(map(str, node.attrs["order"]))
    return rf"{_closed(node.args[0], args[0])}^{{({order})}}"


def _reshape(node: Term, args: Sequence[str]) -> str:
    shape = r" \times ".join(dim(d) for d in node.shape) or "1"
    return rf"{_closed(node.args[0], args[0])}^{{[{shape}]}}"


def _slice(node: Term, args: Sequence[str]) -> str:
    axis, start, size = (node.attrs[n] for n in ("axis", "start", "size"))
    before = ":, " * axis
    return rf"{_closed(node.args[0], args[0])}[{before}{dim(start)} {{+}} {dim(size)}]"


def _gather(node: Term, args: Sequence[str]) -> str:
    return rf"{_closed(node.args[0], args[0])}[{':, ' * node.attrs['axis']}{args[1]}]"


def _where(node: Term, args: Sequence[str]) -> str:
    choice, yes, no = args
    return rf"\begin{{cases}}{yes} & {choice} \\ {no} & \text{{else}}\end{{cases}}"


def _joined(name: str) -> Rule:
    def rule(node: Term, args: Sequence[str]) -> str:
        return rf"{name}_{{{node.attrs['axis']}}}\left[{' ; '.join(args)}\right]"

    return rule


def _over(name: str) -> Rule:
    def rule(node: Term, args: Sequence[str]) -> str:
        axes = ",".join(map(str, node.attrs["axes"]))
        return rf"{name}_{{{axes}}} {_closed(node.args[0], args[0])}"

    return rule


def _fraction(node: Term, args: Sequence[str]) -> str:
    return rf"\frac{{{args[0]}}}{{{args[1]}}}"


RULES: dict[str, Rule] = {
    "input": lambda node, args: word(node.attrs["name"]),
    "constant": _constant,
    "size": lambda node, args: dim(node.attrs["dim"]),
    "positions": lambda node, args: rf"(0, \dots, {dim(node.attrs['dim'])} - 1)",
    "bilinear": lambda node, args: rf"B_{{{', '.join(dim(d) for d in node.shape)}}}",
    "add": _infix(" + "),
    "sub": _sub,
    "mul": _product,
    "div": _fraction,
    "neg": lambda node, args: f"-{_closed(node.args[0], args[0])}",
    "scale": _scale,
    "exp": call(r"\exp"),
    "log": call(r"\log"),
    "sqrt": lambda node, args: rf"\sqrt{{{args[0]}}}",
    "tanh": call(r"\tanh"),
    "sigmoid": call(r"\sigma"),
    "silu": call(word("silu")),
    "softplus": call(word("softplus")),
    "gelu": lambda node, args: call(rf"{word('gelu')}_{{{word(node.attrs['kind'])}}}")(
        node, args
    ),
    "sin": call(r"\sin"),
    "cos": call(r"\cos"),
    "softmax": call(word("softmax")),
    "unit_rms": call(word("RMSNorm")),
    "rms_norm": lambda node, args: (
        rf"{word('RMSNorm')}_{{{args[1]}}}\left({args[0]}\right)"
    ),
    "l2_norm": call(word("L2Norm")),
    "contract": _contract,
    "matmul": _infix(r" \, "),
    "outer": _infix(r" \otimes "),
    "permute": _permute,
    "reshape": _reshape,
    "broadcast": lambda node, args: args[0],
    "concat": _joined(word("cat")),
    "slice": _slice,
    "stack": _joined(word("stack")),
    "flip": call(word("flip")),
    "sum": _over(r"\sum"),
    "mean": _over(word("mean")),
    "gather": _gather,
    "topk": lambda node, args: (
        rf"{word('topk')}_{{{dim(node.attrs['k'])}}}\left({args[0]}\right)"
    ),
    "argsort": call(word("argsort")),
    "one_hot": call(r"\mathbf{e}"),
    "where": _where,
    "equal": _infix(" = "),
    "less": _infix(" < "),
    "count": lambda node, args: rf"\left[{args[0]}\right]",
    "before": call(word("before")),
    "within": lambda node, args: args[0],
}


def lines(block: Block) -> list[tuple[str, str, str]]:
    """(name, body, type) of each named node and each node that is used twice."""
    nodes = block.nodes
    uses: dict[int, int] = {}
    for node in nodes:
        for arg in node.args:
            uses[id(arg)] = uses.get(id(arg), 0) + 1
    names = _names(block, nodes, uses)
    texts: dict[int, str] = {}
    out = []
    for node in nodes:
        body = RULES[node.op](node, [texts[id(a)] for a in node.args])
        if id(node) in names:
            texts[id(node)] = names[id(node)]
            shape = r" \times ".join(dim(d) for d in node.shape) or "1"
            out.append((names[id(node)], body, rf"[{shape}]"))
        else:
            texts[id(node)] = body
    return out


def _names(
    block: Block, nodes: Sequence[Term], uses: Mapping[int, int]
) -> dict[int, str]:
    """A name for each node that gets a line; names that repeat are numbered."""
    outputs = {id(t): name for name, t in block.outputs.items()}
    names: dict[int, str] = {}
    seen: dict[str, int] = {}
    for node in nodes:
        shared = uses.get(id(node), 0) > 1 and node.op not in ("input", "size")
        if id(node) not in outputs and not node.label and not shared:
            continue
        base = outputs.get(id(node)) or node.label or "t"
        seen[base] = seen.get(base, 0) + 1
        again = seen[base] > 1 or base == "t"
        names[id(node)] = word(base) + (rf"_{{{seen[base]}}}" if again else "")
    return names
