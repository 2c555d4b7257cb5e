"""Simply typed terms: hash-consed, locally nameless, β-normal by construction.

Trusted. Every term is made by `make`, which computes the sort from the parts and
refuses what does not type. A bound variable is a pair (level, position) and has no
name, so capture cannot happen and α-equal terms are the same object. Identity is
`is`; equations are built by `eq`.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from k3.logic import signature
from k3.logic.signature import refuse
from k3.logic.sorts import BOOL, Sort

Number = int | Fraction
BINDERS = ("forall", "lam")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function constant; its meaning comes from the kernel's definitions."""

    name: str
    domain: tuple[Sort, ...]
    result: Sort

    def __call__(self, *args: "Term | Number") -> "Term":
        """The symbol applied to its arguments."""
        if len(args) != len(self.domain):
            refuse(f"{self.name} takes {len(self.domain)} arguments: got {len(args)}")
        wanted = zip(args, self.domain, strict=True)
        return make("const", [lift(a, s) for a, s in wanted], self)


class Term:
    """One node; `free` are its free variables, `loose` its unbound bound variables."""

    __slots__ = ("args", "data", "free", "loose", "op", "sort", "uid")
    op: str
    args: tuple["Term", ...]
    data: object
    sort: Sort
    free: frozenset["Term"]
    loose: frozenset[tuple[int, int, Sort]]
    uid: int

    def __new__(cls, *_: object) -> "Term":
        """Refused: terms come from `make`."""
        refuse("terms are made only by k3.logic.terms.make")

    def __setattr__(self, name: str, value: object) -> None:
        refuse("terms never change")

    def __bool__(self) -> bool:
        refuse("a symbolic term has no truth value: use `ite`, not `if`")

    def __reduce__(self) -> NoReturn:
        refuse("terms are not copied or pickled: write a proof log")

    def __add__(self, o: "Term | Number") -> "Term":
        return make("+", (self, lift(o, self.sort)))

    def __radd__(self, o: Number) -> "Term":
        return make("+", (lift(o, self.sort), self))

    def __sub__(self, o: "Term | Number") -> "Term":
        return make("-", (self, lift(o, self.sort)))

    def __rsub__(self, o: Number) -> "Term":
        return make("-", (lift(o, self.sort), self))

    def __mul__(self, o: "Term | Number") -> "Term":
        return make("*", (self, lift(o, self.sort)))

    def __rmul__(self, o: Number) -> "Term":
        return make("*", (lift(o, self.sort), self))

    def __truediv__(self, o: "Term | Number") -> "Term":
        return make("/", (self, lift(o, self.sort)))

    def __rtruediv__(self, o: Number) -> "Term":
        return make("/", (lift(o, self.sort), self))

    def __neg__(self) -> "Term":
        return make("-", (lift(0, self.sort), self))

    def __le__(self, o: "Term | Number") -> "Term":
        return make("<=", (self, lift(o, self.sort)))

    def __lt__(self, o: "Term | Number") -> "Term":
        return make("<", (self, lift(o, self.sort)))

    def __ge__(self, o: "Term | Number") -> "Term":
        return make("<=", (lift(o, self.sort), self))

    def __gt__(self, o: "Term | Number") -> "Term":
        return make("<", (lift(o, self.sort), self))

    def __and__(self, o: "Term") -> "Term":
        return make("and", (self, o))

    def __or__(self, o: "Term") -> "Term":
        return make("or", (self, o))

    def __invert__(self) -> "Term":
        return make("not", (self,))

    def __call__(self, *args: "Term | Number") -> "Term":
        """A function term applied to its arguments."""
        if self.sort.head != "Fun" or len(args) != len(self.sort.domain):
            refuse(f"a {self.sort} is not applied to {len(args)} arguments")
        wanted = zip(args, self.sort.domain, strict=True)
        return make("call", [self, *(lift(a, s) for a, s in wanted)])

    def __repr__(self) -> str:
        from k3.logic.show import text  # printing is untrusted, and imports this file

        return text(self)


def lift(x: "Term | Number", sort: Sort) -> Term:
    """A Python number as a literal of the sort; a term as itself."""
    if isinstance(x, Term):
        return x
    if isinstance(x, bool):
        return make("lit", (), x, BOOL)
    if not isinstance(x, int | Fraction):
        refuse(f"{x!r} is not an exact number: use int or Fraction")
    return make("lit", (), Fraction(x), sort)


HINTS: dict[int, tuple[str, ...]] = {}  # names for printing only
_table: dict[object, Term] = {}
_counter = itertools.count()


def _const_sort(args: tuple[Term, ...], data: object) -> Sort:
    if type(data) is not Symbol or data.domain != tuple(a.sort for a in args):
        refuse(f"{data} is not applied to {[str(a.sort) for a in args]}")
    return data.result


def _binder_sort(op: str, args: tuple[Term, ...], data: object) -> Sort:
    if not isinstance(data, tuple) or not data or len(args) != 1:
        refuse(f"{op} binds at least one variable in one body")
    for level, position, sort in args[0].loose:
        if level == 0 and (position >= len(data) or data[position] != sort):
            refuse(f"{op} binds {data}, its body uses a {sort} at {position}")
    if op == "forall":
        return signature.logical((args[0].sort,))
    return Sort("Fun", (*data, args[0].sort))


def make(
    op: str, args: Iterable[Term] = (), data: object = None, sort: Sort | None = None
) -> Term:
    """The only constructor: sort-checked, β-reduced, pairs and parts reduced."""
    parts = tuple(args)
    if any(type(a) is not Term for a in parts):
        refuse(f"the parts of a term are terms: {op}")
    if op in signature.LEAVES:
        found = signature.leaf(op, len(parts), data, sort)
    elif op in BINDERS:
        found = _binder_sort(op, parts, data)
    elif op == "const":
        found = _const_sort(parts, data)
    elif op in signature.RULES and data is None:
        found = signature.RULES[op](tuple(p.sort for p in parts))
    else:
        refuse(f"no such operation: {op} with {data}")
    if op == "call" and parts[0].op == "lam":
        return open_body(parts[0].args[0], parts[1:])
    if op in ("fst", "snd") and parts[0].op == "pair":
        return parts[0].args[op == "snd"]
    halves = op == "pair" and [p.op for p in parts] == ["fst", "snd"]
    if halves and parts[0].args[0] is parts[1].args[0]:
        return parts[0].args[0]
    return _intern(op, parts, data, found)


def _intern(op: str, parts: tuple[Term, ...], data: object, sort: Sort) -> Term:
    key = (op, tuple(p.uid for p in parts), data, sort)
    if key not in _table:
        t = object.__new__(Term)
        free = frozenset[Term]().union(*(p.free for p in parts))
        loose = frozenset[tuple[int, int, Sort]]().union(*(p.loose for p in parts))
        if op in BINDERS:
            loose = frozenset((k - 1, i, s) for k, i, s in loose if k)
        if op == "bound" and isinstance(data, tuple):
            loose = frozenset([(*data, sort)])
        values = (op, parts, data, sort, frozenset([t]) if op == "free" else free)
        names = ("op", "args", "data", "sort", "free", "loose", "uid")
        for n, v in zip(names, (*values, loose, next(_counter)), strict=True):
            object.__setattr__(t, n, v)
        _table[key] = t
    return _table[key]


Leaf = Callable[[Term, int], Term | None]
Memo = dict[tuple[int, int], Term]


def _walk(t: Term, leaf: Leaf, k: int, memo: Memo) -> Term:
    """Rebuild t; `leaf` replaces a node, or returns None to go inside."""
    key = (t.uid, k)
    if key not in memo:
        new = leaf(t, k)
        if new is None:
            inner = k + (t.op in BINDERS)
            args = [_walk(a, leaf, inner, memo) for a in t.args]
            same = all(a is b for a, b in zip(args, t.args, strict=True))
            new = t if same else make(t.op, args, t.data)
            if t.op in BINDERS:
                HINTS.setdefault(new.uid, HINTS[t.uid])
        memo[key] = new
    return memo[key]


def _is_below(t: Term, k: int) -> bool:
    return all(level < k for level, _, _ in t.loose)


def shift(t: Term, by: int) -> Term:
    """Raise the loose bound variables of t past `by` more binders."""
    return _walk(t, lambda t, k: _shifted(t, k, by), 0, {}) if by else t


def _shifted(t: Term, k: int, by: int) -> Term | None:
    if _is_below(t, k):
        return t
    if t.op != "bound" or not isinstance(t.data, tuple):
        return None
    return make("bound", (), (t.data[0] + by, t.data[1]), t.sort)


def open_body(body: Term, values: tuple[Term, ...]) -> Term:
    """The body of a binder with its variables replaced by values."""
    return _walk(body, lambda t, k: _opened(t, k, values), 0, {})


def _opened(t: Term, k: int, values: tuple[Term, ...]) -> Term | None:
    if _is_below(t, k):
        return t
    if t.op != "bound" or not isinstance(t.data, tuple):
        return None
    level, position = t.data
    if level > k:
        return make("bound", (), (level - 1, position), t.sort)
    if values[position].sort != t.sort:
        refuse(f"a {t.sort} is not replaced by a {values[position].sort}")
    return shift(values[position], k)


def subst(t: Term, new: Mapping[Term, Term]) -> Term:
    """Replace free variables by closed-bodied terms of the same sort."""
    for v, value in new.items():
        if v.op != "free" or v.sort != value.sort or value.loose:
            refuse(f"{v} is not replaced by a {value.sort}")
    keys = frozenset(new)
    return _walk(t, lambda t, k: new.get(t) if t.free & keys else t, 0, {})


def bind(op: str, variables: Iterable[Term], body: Term) -> Term:
    """forall or lam over free variables."""
    vs = tuple(variables)
    if len(set(vs)) != len(vs) or any(v.op != "free" for v in vs):
        refuse(f"{op} binds distinct variables")
    if body.loose:
        refuse("a binder is built over a body without loose variables")
    where = {v: i for i, v in enumerate(vs)}
    inside = _walk(body, lambda t, k: _bound(t, k, where), 0, {})
    new = make(op, (inside,), tuple(v.sort for v in vs))
    HINTS.setdefault(new.uid, tuple(str(v.data).split("#")[0] for v in vs))
    return new


def _bound(t: Term, k: int, where: Mapping[Term, int]) -> Term | None:
    if not any(v in t.free for v in where):
        return t
    return make("bound", (), (k, where[t]), t.sort) if t in where else None
