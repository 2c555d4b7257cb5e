"""The rules of the second checker: what each step of a log shows.

Written apart from the kernel, and shares no code with it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from k3.logic import check_constants
from k3.logic.check_constants import NONE, Hyps, Rule, Shown, Step
from k3.logic.check_ground import certified, follows, polynomial
from k3.logic.check_terms import B, Terms, Z, demand

if TYPE_CHECKING:
    from k3.logic.check import Log


def _union(premises: Sequence[Step]) -> Hyps:
    return NONE.union(*(p.hyps for p in premises))


def _parts(terms: Terms, t: int, op: str) -> tuple[int, ...]:
    found, _, xs = terms.rows[t]
    demand(found == op, f"a term of the form {op} is needed, this is {found}")
    return xs


def _closed(terms: Terms, *ts: int) -> None:
    fine = all(terms.sorts[t] == B and not terms.open[t] for t in ts)
    demand(fine, "a closed statement is needed")


def _assume(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    phi = log.number(data[0])
    _closed(log.terms, phi)
    return frozenset([phi]), phi


def _discharge(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (p,), phi = ps, log.number(data[0])
    return p.hyps - {phi}, log.terms.enter("=>", None, (phi, p.concl))


def _mp(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    rule, premise = ps
    phi, psi = _parts(log.terms, rule.concl, "=>")
    demand(phi == premise.concl, "the premise is another statement")
    return _union(ps), psi


def _conj_intro(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    demand(len(ps) >= 2, "a conjunction has two parts")
    return _union(ps), log.terms.enter("and", None, [p.concl for p in ps])


def _conj_elim(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (p,) = ps
    parts = _parts(log.terms, p.concl, "and")
    demand(type(data[0]) is int and 0 <= data[0] < len(parts), "no such part")
    return p.hyps, parts[data[0]]


def _iff_intro(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    there, back = (_parts(log.terms, p.concl, "=>") for p in ps)
    demand(there == back[::-1], "the second is not the converse of the first")
    return _union(ps), log.terms.enter("=", None, there)


def _eq_mp(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    same, p = ps
    a, b = _parts(log.terms, same.concl, "=")
    demand(a == p.concl, "the equation is about another statement")
    return _union(ps), b


def _by_cases(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (yes, no), phi = ps, log.number(data[0])
    _closed(log.terms, phi)
    demand(yes.concl == no.concl, "the cases show different statements")
    negated = log.terms.enter("not", None, (phi,))
    return (yes.hyps - {phi}) | (no.hyps - {negated}), yes.concl


def _untouched(log: "Log", variables: Sequence[int], hyps: Hyps) -> None:
    spoken = NONE.union(*(log.terms.frees[h] for h in hyps))
    demand(not spoken & set(variables), "a hypothesis speaks of the variable")


def _generalize(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (p,), vs = ps, [log.number(v) for v in data]
    _untouched(log, vs, p.hyps)
    return p.hyps, log.terms.bind("forall", vs, p.concl)


def _instantiate(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (p,), values = ps, [log.number(v) for v in data]
    (body,) = _parts(log.terms, p.concl, "forall")
    wanted = log.terms.rows[p.concl][1]
    fits = tuple(log.terms.sorts[v] for v in values) == wanted
    demand(fits and not any(log.terms.open[v] for v in values), "other values")
    return p.hyps, log.terms.fill(body, values)


def _refl(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    t = log.number(data[0])
    return NONE, log.terms.enter("=", None, (t, t))


def _sym(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (p,) = ps
    a, b = _parts(log.terms, p.concl, "=")
    return p.hyps, log.terms.enter("=", None, (b, a))


def _trans(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (a, b), (c, d) = (_parts(log.terms, p.concl, "=") for p in ps)
    demand(b == c, "the middles differ")
    return _union(ps), log.terms.enter("=", None, (a, d))


def _congr(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    t = log.number(data[0])
    op, extra, xs = log.terms.rows[t]
    sides = [_parts(log.terms, p.concl, "=") for p in ps]
    demand(op not in ("lam", "forall"), "congruence does not go under binders")
    demand(tuple(left for left, _ in sides) == xs, "equations for other parts")
    new = log.terms.enter(op, extra, [right for _, right in sides]) if xs else t
    return _union(ps), log.terms.enter("=", None, (t, new))


def _abstract(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    (p,), vs = ps, [log.number(v) for v in data]
    _untouched(log, vs, p.hyps)
    sides = _parts(log.terms, p.concl, "=")
    new = [log.terms.bind("lam", vs, s) for s in sides]
    return p.hyps, log.terms.enter("=", None, new)


def _ring(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    a, b = (log.number(t) for t in data)
    same = polynomial(log.terms, a, {}) == polynomial(log.terms, b, {})
    demand(same, "not the same polynomial")
    return NONE, log.terms.enter("=", None, (a, b))


def _certificate(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    goal, cases = log.number(data[0]), data[1]
    _closed(log.terms, goal)
    known = [p.concl for p in ps]
    demand(certified(log.terms, known, goal, cases), "the certificate proves nothing")
    return _union(ps), goal


def _ground(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    goal = log.number(data[0])
    _closed(log.terms, goal)
    known = [p.concl for p in ps]
    demand(follows(log.terms, known, goal), "a ground step does not follow")
    return _union(ps), goal


def _induct_list(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    terms, x, phi = log.terms, log.number(data[0]), log.number(data[1])
    sort = terms.sorts[x]
    demand(sort[0] == "List", "this induction is over a list")
    h, t = terms.unused(sort[1], phi, x), 0
    t = terms.unused(sort, phi, x, h)
    at = [terms.enter("nil", None, (), sort), t, terms.enter("cons", None, (h, t))]
    zero, smaller, larger = (terms.replace(phi, {x: v}) for v in at)
    step = terms.bind("forall", (h, t), terms.enter("=>", None, (smaller, larger)))
    return _induction(log, ps, x, (zero, step)), terms.bind("forall", (x,), phi)


def _induct_nat(log: "Log", ps: list[Step], data: list[Any]) -> Shown:
    terms, x, phi = log.terms, log.number(data[0]), log.number(data[1])
    demand(terms.sorts[x] == Z, "this induction is over an integer")
    n, nought = terms.unused(Z, phi, x), terms.whole(0)
    up = terms.enter("+", None, (n, terms.whole(1)))
    zero, smaller, larger = (terms.replace(phi, {x: v}) for v in (nought, n, up))
    natural = terms.enter("<=", None, (nought, n))
    given = terms.enter("and", None, (natural, smaller))
    step = terms.bind("forall", (n,), terms.enter("=>", None, (given, larger)))
    whole = terms.enter("=>", None, (terms.enter("<=", None, (nought, x)), phi))
    return _induction(log, ps, x, (zero, step)), terms.bind("forall", (x,), whole)


def _induction(log: "Log", ps: list[Step], x: int, wanted: Sequence[int]) -> Hyps:
    demand([p.concl for p in ps] == list(wanted), "base or step of an induction")
    _untouched(log, [x], _union(ps))
    return _union(ps)


RULES: dict[str, Rule] = {
    "assume": _assume,
    "discharge": _discharge,
    "mp": _mp,
    "conj_intro": _conj_intro,
    "conj_elim": _conj_elim,
    "iff_intro": _iff_intro,
    "eq_mp": _eq_mp,
    "by_cases": _by_cases,
    "generalize": _generalize,
    "instantiate": _instantiate,
    "refl": _refl,
    "sym": _sym,
    "trans": _trans,
    "congr": _congr,
    "abstract": _abstract,
    "ring": _ring,
    "certificate": _certificate,
    "ground": _ground,
    "induct_list": _induct_list,
    "induct_nat": _induct_nat,
    "axiom": check_constants.axiom,
    "define": check_constants.define,
    "define_recursive": check_constants.define_recursive,
}
