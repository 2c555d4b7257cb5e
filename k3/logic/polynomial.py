"""Exact polynomials over opaque atoms, and the check of an arithmetic certificate.

Trusted. A certificate refutes a set of facts `p >= 0`, `p > 0`, `p = 0`: a linear
combination of products of facts that is identically a negative constant (or zero,
when a product of strict facts takes part). Searching for it is `psatz`.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from k3.errors import ProofError
from k3.logic.sorts import BOOL, INT, REAL
from k3.logic.terms import BINDERS, Term

Poly = dict[tuple[int, ...], Fraction]  # sorted atom numbers -> coefficient
Cases = Mapping[Term, bool]  # a truth value for every `ite` condition


class Fact(NamedTuple):
    """`poly kind 0`, kind one of >=, >, =."""

    poly: Poly
    kind: str


class Entry(NamedTuple):
    """A multiplier for the product of the facts at these positions."""

    facts: tuple[int, ...]
    factor: Fraction


def add(p: Poly, q: Poly, k: Fraction | int = 1) -> Poly:
    """p + k q."""
    out = dict(p)
    for m, c in q.items():
        out[m] = out.get(m, Fraction(0)) + k * c
        if not out[m]:
            del out[m]
    return out


def mul(p: Poly, q: Poly) -> Poly:
    """p q."""
    out: Poly = {}
    for m, c in p.items():
        out = add(out, {tuple(sorted(m + n)): c * d for n, d in q.items()})
    return out


def poly(t: Term, cases: Cases) -> Poly:
    """The polynomial of an arithmetic term; anything else is an atom."""
    if t.op == "lit" and isinstance(t.data, Fraction):
        return {(): t.data} if t.data else {}
    if t.op in ("+", "-"):
        sign = 1 if t.op == "+" else -1
        return add(poly(t.args[0], cases), poly(t.args[1], cases), sign)
    if t.op == "*":
        return mul(poly(t.args[0], cases), poly(t.args[1], cases))
    if t.op == "/" and t.args[1].op == "lit" and t.args[1].data:
        assert isinstance(t.args[1].data, Fraction)
        return add({}, poly(t.args[0], cases), 1 / t.args[1].data)
    if t.op == "ite" and t.args[0] in cases:
        return poly(t.args[1] if cases[t.args[0]] else t.args[2], cases)
    return {(t.uid,): Fraction(1)}


def conditions(ts: Iterable[Term]) -> list[Term]:
    """Every `ite` condition outside binders, in order of first appearance."""
    found: dict[Term, None] = {}
    seen: set[Term] = set()
    for t in ts:
        _conditions(t, found, seen)
    return list(found)


def _conditions(t: Term, found: dict[Term, None], seen: set[Term]) -> None:
    if t in seen or t.op in BINDERS:
        return
    seen.add(t)
    for a in t.args:
        _conditions(a, found, seen)
    if t.op == "ite" and t.sort in (INT, REAL):
        found[t.args[0]] = None


def facts_of(t: Term, holds: bool, cases: Cases) -> list[Fact]:
    """What the truth value of a statement says about polynomials."""
    if t.op == "not":
        return facts_of(t.args[0], not holds, cases)
    if t.op == "and" and holds:
        return [f for a in t.args for f in facts_of(a, True, cases)]
    if t.op in ("<=", "<"):
        gap = add(poly(t.args[1], cases), poly(t.args[0], cases), -1)
        if holds:
            return [Fact(gap, ">=" if t.op == "<=" else ">")]
        return [Fact(add({}, gap, -1), ">" if t.op == "<=" else ">=")]
    if t.op == "=" and t.args[0].sort in (INT, REAL) and holds:
        gap = add(poly(t.args[1], cases), poly(t.args[0], cases), -1)
        return [Fact(gap, "=")]
    return []


def branches(goal: Term, cases: Cases) -> list[list[Fact]]:
    """The facts of `not goal`; an equation is refuted on both sides."""
    if goal.op == "=" and goal.args[0].sort in (INT, REAL):
        gap = facts_of(goal, True, cases)[0].poly
        return [[Fact(gap, ">")], [Fact(add({}, gap, -1), ">")]]
    if goal.op in ("<=", "<", "not", "lit") and goal.sort == BOOL:
        return [facts_of(goal, False, cases)]
    raise ProofError("certificates prove one equation or inequality at a time")


def refutes(facts: Sequence[Fact], entries: Sequence[Entry]) -> bool:
    """Does the combination show that the facts cannot all hold?"""
    total: Poly = {}
    strict = False
    for chosen, factor in entries:
        within = all(type(i) is int and 0 <= i < len(facts) for i in chosen)
        if not chosen or not within or type(factor) is not Fraction:
            return False
        kinds = [facts[i].kind for i in chosen]
        if "=" not in kinds and factor < 0:
            return False
        strict = strict or (all(k == ">" for k in kinds) and factor > 0)
        product: Poly = {(): Fraction(1)}
        for i in chosen:
            product = mul(product, facts[i].poly)
        total = add(total, product, factor)
    constant = total.pop((), Fraction(0))
    return not total and (constant < 0 or (constant == 0 and strict))
