"""Axioms and definitions in the second checker, apart from the kernel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3.logic.check_terms import Sort, Terms, Z, demand

if TYPE_CHECKING:
    from k3.logic.check import Log


@dataclass(frozen=True)
class Step:
    """What one step of the log has shown."""

    hyps: frozenset[int]
    concl: int
    axioms: frozenset[tuple[str, int]]
    ground: bool


Hyps = frozenset[int]
Shown = tuple[Hyps, int]
Rule = Callable[["Log", list[Step], list[Any]], Shown]
NONE: Hyps = frozenset()


def axiom(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    """A closed statement taken as true."""
    phi = log.number(data[1])
    demand(isinstance(data[0], str) and not log.terms.frees[phi], "an open axiom")
    log.earlier(phi)
    return NONE, phi


def _forall(terms: Terms, vs: Sequence[int], body: int) -> int:
    return terms.bind("forall", vs, body) if vs else body


def define(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    """An explicit definition."""
    terms, symbol = log.terms, log.symbol(data[0])
    params, body = [log.number(p) for p in data[1]], log.number(data[2])
    fits = tuple(terms.sorts[p] for p in params) == symbol[1]
    demand(fits and terms.sorts[body] == symbol[2], "a definition of other sorts")
    demand(terms.frees[body] <= set(params), "a definition speaks of something else")
    demand(not terms.open[body], "a definition has unbound variables")
    key = ("defined", symbol[1], symbol[2], tuple(params), body)
    log.meaning(symbol, key, [body])
    left = terms.enter("const", symbol, params)
    return NONE, _forall(terms, params, terms.enter("=", None, (left, body)))


def define_recursive(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    """One law of a structural recursion."""
    terms, symbol, on = log.terms, log.symbol(data[0]), data[2]
    params = [log.number(p) for p in data[1]]
    base, step = log.number(data[3]), log.number(data[4])
    demand(type(on) is int and 0 <= on < len(params), "recursion on no parameter")
    fits = tuple(terms.sorts[p] for p in params) == symbol[1]
    results = terms.sorts[base] == terms.sorts[step] == symbol[2]
    demand(fits and results, "a definition of other sorts")
    x, others = params[on], [p for i, p in enumerate(params) if i != on]
    small, zero, large = _split(terms, x, terms.sorts[x])
    distinct = {*params, *small}
    demand(len(distinct) == len(params) + len(small), "parameters that coincide")
    demand(terms.frees[base] <= set(others), "the base speaks of something else")
    allowed = {*others, *small}
    demand(terms.frees[step] <= allowed, "the step speaks of something else")
    demand(not terms.open[base] and not terms.open[step], "unbound variables")
    outside = _calls(terms, step, symbol, on, small[-1])
    key = ("recursive", symbol[1], symbol[2], tuple(params), on, base, step)
    log.meaning(symbol, key, [base, *outside])
    at = [zero, large]
    left = [[v if p == x else p for p in params] for v in at]
    calls = [terms.enter("const", symbol, xs) for xs in left]
    laws = [
        terms.enter("=", None, (c, b)) for c, b in zip(calls, (base, step), strict=True)
    ]
    if terms.sorts[x] == Z:
        natural = terms.enter("<=", None, (terms.whole(0), small[0]))
        laws[1] = terms.enter("=>", None, (natural, laws[1]))
    demand(data[5] in (0, 1), "a recursion has two laws")
    return NONE, _forall(terms, [*(small if data[5] else ()), *others], laws[data[5]])


def _split(terms: Terms, x: int, sort: Sort) -> tuple[list[int], int, int]:
    """Variables for the smaller value, the least value, the next value."""
    name = terms.rows[x][1]
    if sort == Z:
        n = terms.enter("free", f"{name}.pred", (), Z)
        return [n], terms.whole(0), terms.enter("+", None, (n, terms.whole(1)))
    demand(sort[0] == "List", "recursion is over a list or an integer")
    h = terms.enter("free", f"{name}.hd", (), sort[1])
    t = terms.enter("free", f"{name}.tl", (), sort)
    nothing = terms.enter("nil", None, (), sort)
    return [h, t], nothing, terms.enter("cons", None, (h, t))


def _calls(terms: Terms, t: int, symbol: Any, on: int, smaller: int) -> list[int]:
    """Constants of a step besides its calls to itself, which must be on `smaller`."""
    op, data, xs = terms.rows[t]
    out = [part for x in xs for part in _calls(terms, x, symbol, on, smaller)]
    if op == "const" and data == symbol:
        demand(xs[on] == smaller, f"{symbol[0]} calls itself on something not smaller")
        return out
    if op == "const":
        # its parts are examined above: only the constant itself is left to look up
        return [*out, terms.enter("const", data, [_blank(terms, s) for s in data[1]])]
    return out


def _blank(terms: Terms, sort: Sort) -> int:
    return terms.enter("free", "_blank", (), sort)
