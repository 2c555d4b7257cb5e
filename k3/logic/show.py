"""Terms in readable mathematics. Untrusted: nothing is decided by what it prints."""

from fractions import Fraction

from k3.logic.sorts import BOOL, Sort
from k3.logic.terms import BINDERS, HINTS, Symbol, Term, make, open_body

INFIX = {
    "=>": (" → ", 1),
    "or": (" ∨ ", 2),
    "and": (" ∧ ", 3),
    "=": (" = ", 4),
    "<=": (" ≤ ", 4),
    "<": (" < ", 4),
    "cons": (" :: ", 5),
    "+": (" + ", 6),
    "-": (" − ", 6),
    "*": ("·", 7),
    "/": (" / ", 7),
}
IFF = (" ⇔ ", 0)
# Names of λ by sort: equal functions are one term, so their hints are another's.
LETTERS = {
    "Int": ("i", "j", "k", "m", "n"),
    "Real": ("x", "y", "z", "u", "v"),
    "Bool": ("b", "c", "d"),
    "Pair": ("p", "q", "r"),
    "List": ("xs", "ys", "zs"),
    "Fun": ("f", "g", "h"),
}
PARTS = {"fst": "₁", "snd": "₂"}


def text(t: Term) -> str:
    """The term on one line."""
    return _show(t, 0, _names(t))


def statement(t: Term) -> str:
    """A theorem's statement: variables with their sorts, premises, conclusion."""
    lines, used = [], _names(t)
    while t.op in ("forall", "=>"):
        if t.op == "=>":
            parts = t.args[0].args if t.args[0].op == "and" else t.args[:1]
            lines += [f"  if {_show(p, 0, used)}" for p in parts]
            t = t.args[1]
            continue
        names, t = _open(t, used)
        used |= {n for n, _ in names}
        lines.append("for all " + ", ".join(f"{n} : {s}" for n, s in names))
    return "\n".join([*lines, f"  {_show(t, 0, used)}"])


def _names(t: Term) -> set[str]:
    return {str(v.data).split("#")[0] for v in t.free}


def _letter(sort: Sort, taken: set[str]) -> str:
    """The name of a bound variable of λ."""
    small = (sort.name[:1].lower(),) if sort.head == "Named" else LETTERS[sort.head]
    free = [name for name in small if name not in taken]
    return free[0] if free else small[0]


def _open(t: Term, used: set[str]) -> tuple[list[tuple[str, Sort]], Term]:
    assert isinstance(t.data, tuple)
    names: list[tuple[str, Sort]] = []
    for hint, sort in zip(HINTS[t.uid], t.data, strict=True):
        taken = used | {n for n, _ in names}
        name = _letter(sort, taken) if t.op == "lam" else hint
        while name in taken:
            name += "′"
        names.append((name, sort))
    values = tuple(make("free", (), n, s) for n, s in names)
    return names, open_body(t.args[0], values)


def _show(t: Term, outer: int, used: set[str]) -> str:
    if t.op in BINDERS:
        names, body = _open(t, used)
        bound = " ".join(n for n, _ in names)
        inside = _show(body, 0, used | {n for n, _ in names})
        mark = "∀" if t.op == "forall" else "λ"
        return f"({mark}{bound}. {inside})"
    if (special := _special(t, outer, used)) is not None:
        return special
    if t.op in INFIX:
        sign, level = INFIX[t.op]
        right = level + (t.op in ("-", "/"))
        left = level + (t.op in ("=>", "cons", "=", "<=", "<"))
        if t.op == "=" and t.args[0].sort == BOOL:
            (sign, level), left, right = IFF, 5, 5
        first, *rest = t.args
        shown = [_show(first, left, used)]
        shown += [_show(a, max(right, level), used) for a in rest]
        whole = sign.join(shown)
        return f"({whole})" if level < outer else whole
    return _applied(t, used)


def _special(t: Term, outer: int, used: set[str]) -> str | None:
    if t.op == "lit":
        if isinstance(t.data, bool):
            return "true" if t.data else "false"
        assert isinstance(t.data, Fraction)
        small = t.data >= 0 and t.data.denominator == 1
        return str(t.data) if small or not outer else f"({t.data})"
    if t.op == "-" and t.args[0].op == "lit" and not t.args[0].data:
        return f"−{_show(t.args[1], 8, used)}"
    if t.op == "not" and t.args[0].op == "=" and t.args[0].args[0].sort != BOOL:
        a, b = (_show(x, 5, used) for x in t.args[0].args)
        return f"{a} ≠ {b}" if outer <= 4 else f"({a} ≠ {b})"
    if t.op == "ite":
        return _choice(t, used)
    return None


def _choice(t: Term, used: set[str]) -> str:
    c, a, b = t.args
    sa, sb = _show(a, 0, used), _show(b, 0, used)
    if c.op == "<=" and c.args == (a, b):
        return f"min({sa}, {sb})"
    if c.op == "<=" and c.args == (b, a):
        return f"max({sb}, {sa})"
    zero = b.op == "-" and b.args[0].op == "lit" and not b.args[0].data
    if c.op == "<=" and zero and c.args == (b.args[0], a) and b.args[1] is a:
        return f"|{sa}|"
    if a.op == "lit" and b.op == "lit" and a.data == 1 and b.data == 0:
        return f"[{_show(c, 0, used)}]"
    return f"(if {_show(c, 0, used)} then {sa} else {sb})"


def _applied(t: Term, used: set[str]) -> str:
    if t.op in ("free", "bound"):
        return str(t.data) if t.op == "bound" else str(t.data).split("#")[0]
    if t.op == "nil":
        return "[]"
    if t.op in PARTS:
        return f"{_show(t.args[0], 9, used)}{PARTS[t.op]}"
    if t.op == "to_real":
        return _show(t.args[0], 9, used)
    args = [_show(a, 0, used) for a in t.args]
    if t.op == "call":
        return f"{args[0]}({', '.join(args[1:])})"
    if t.op == "const":
        assert isinstance(t.data, Symbol)
        name = t.data.name.split("[")[0]
        return f"{name}({', '.join(args)})" if args else name
    if t.op == "not":
        return f"¬{_show(t.args[0], 8, used)}"
    return f"({', '.join(args)})" if t.op == "pair" else f"{t.op}({', '.join(args)})"
