"""The proof kernel: only the rules here, in `induction` and `constants` make theorems.

Trusted, with sorts, signature, terms, polynomial and the SMT printer. A theorem
keeps its hypotheses, the axioms it rests on, and how it was made, so that `log` can
write the proof down and `check`, which shares no code with this file, can repeat it.
"""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from k3.logic import polynomial, smt
from k3.logic.polynomial import Entry
from k3.logic.signature import refuse
from k3.logic.sorts import BOOL
from k3.logic.syntax import conj, eq, implies
from k3.logic.terms import (
    BINDERS,
    Number,
    Term,
    bind,
    lift,
    make,
    open_body,
)

Axioms = frozenset[tuple[str, Term]]
_MADE: "weakref.WeakKeyDictionary[Thm, tuple[object, ...]]"


class Thm:
    """`hyps ⊢ concl`, resting on `axioms`."""

    __slots__ = ("__weakref__", "axioms", "concl", "data", "hyps", "premises", "rule")
    hyps: frozenset[Term]
    concl: Term
    axioms: Axioms
    rule: str
    premises: tuple["Thm", ...]
    data: tuple[Any, ...]

    def __new__(cls, *_: object, **__: object) -> "Thm":
        """Refused: theorems come from rules."""
        refuse("theorems are made only by the rules of the kernel")

    def __init_subclass__(cls) -> None:
        refuse("there is one kind of theorem")

    def __setattr__(self, name: str, value: object) -> None:
        refuse("theorems never change")

    def __reduce__(self) -> NoReturn:
        refuse("theorems are not copied or pickled: write a proof log")

    def __repr__(self) -> str:
        given = ", ".join(map(repr, self.hyps))
        return f"{given} ⊢ {self.concl!r}".strip()

    def __call__(self, *values: Term | Number) -> "Thm":
        """The instance of a ∀-theorem at these values."""
        return instantiate(self, *values)


_MADE = weakref.WeakKeyDictionary()


def conclude(
    rule: str,
    concl: Term,
    premises: Sequence[Thm] = (),
    data: tuple[Any, ...] = (),
    hyps: frozenset[Term] | None = None,
) -> Thm:
    """Make a theorem; called only by the rules of these three files."""
    for p in premises:
        genuine(p)
    if concl.sort != BOOL or concl.loose:
        refuse("a theorem states a closed statement")
    if hyps is None:
        hyps = frozenset[Term]().union(*(p.hyps for p in premises))
    axioms: Axioms = frozenset().union(*(p.axioms for p in premises))
    if rule == "axiom":
        axioms = frozenset([(data[0], concl)])
    th: Thm = object.__new__(Thm)
    values = (hyps, concl, axioms, rule, tuple(premises), data)
    names = ("hyps", "concl", "axioms", "rule", "premises", "data")
    for n, v in zip(names, values, strict=True):
        object.__setattr__(th, n, v)
    _MADE[th] = values
    return th


def genuine(th: Thm) -> Thm:
    """The theorem itself, if a rule made it and nothing has touched it since."""
    made = _MADE.get(th) if type(th) is Thm else None
    now = (th.hyps, th.concl, th.axioms, th.rule, th.premises, th.data) if made else ()
    if made is None or any(a is not b for a, b in zip(made, now, strict=True)):
        refuse("this object was not made by a rule of the kernel")
    return th


def statement(phi: Term) -> Term:
    """The term itself, if it is a closed statement."""
    if type(phi) is not Term or phi.sort != BOOL or phi.loose:
        refuse("a closed statement is needed here")
    return phi


def _head(th: Thm, op: str) -> tuple[Term, ...]:
    if genuine(th).concl.op != op:
        refuse(f"this rule needs a theorem of the form {op}: got {th!r}")
    return th.concl.args


def assume(phi: Term) -> Thm:
    """φ ⊢ φ."""
    return conclude("assume", statement(phi), (), (phi,), frozenset([phi]))


def discharge(phi: Term, th: Thm) -> Thm:
    """From Γ, φ ⊢ ψ: Γ ⊢ φ ⇒ ψ."""
    rest = genuine(th).hyps - {statement(phi)}
    return conclude("discharge", implies(phi, th.concl), (th,), (phi,), rest)


def mp(rule: Thm, premise: Thm) -> Thm:
    """From φ ⇒ ψ and φ: ψ."""
    phi, psi = _head(rule, "=>")
    if premise.concl is not phi:
        refuse(f"the premise is {phi!r}: got {premise.concl!r}")
    return conclude("mp", psi, (rule, premise))


def conj_intro(*ths: Thm) -> Thm:
    """From φ, ψ, ...: φ ∧ ψ ∧ ..."""
    if len(ths) < 2:
        refuse("a conjunction has at least two parts")
    return conclude("conj_intro", conj(*(t.concl for t in ths)), ths)


def conj_elim(th: Thm, part: int) -> Thm:
    """One part of a conjunction, counted from 0."""
    parts = _head(th, "and")
    if type(part) is not int or not 0 <= part < len(parts):
        refuse(f"the conjunction has {len(parts)} parts: got {part}")
    return conclude("conj_elim", parts[part], (th,), (part,))


def iff_intro(there: Thm, back: Thm) -> Thm:
    """From φ ⇒ ψ and ψ ⇒ φ: φ = ψ."""
    (a, b), (c, d) = _head(there, "=>"), _head(back, "=>")
    if a is not d or b is not c:
        refuse("the second implication is not the converse of the first")
    return conclude("iff_intro", eq(a, b), (there, back))


def eq_mp(same: Thm, th: Thm) -> Thm:
    """From φ = ψ and φ: ψ."""
    a, b = _head(same, "=")
    if a is not th.concl:
        refuse(f"the left side is {a!r}: got {th.concl!r}")
    return conclude("eq_mp", b, (same, th))


def by_cases(phi: Term, yes: Thm, no: Thm) -> Thm:
    """From Γ, φ ⊢ ψ and Δ, ¬φ ⊢ ψ: Γ, Δ ⊢ ψ."""
    if genuine(yes).concl is not genuine(no).concl:
        refuse("both cases prove the same statement")
    rest = (yes.hyps - {statement(phi)}) | (no.hyps - {~phi})
    return conclude("by_cases", yes.concl, (yes, no), (phi,), rest)


def generalize(variables: Iterable[Term], th: Thm) -> Thm:
    """From Γ ⊢ φ, x not free in Γ: Γ ⊢ ∀x. φ."""
    vs = tuple(variables)
    if any(v in h.free for v in vs for h in genuine(th).hyps):
        refuse("a variable that a hypothesis speaks of cannot be generalized")
    return conclude("generalize", bind("forall", vs, th.concl), (th,), vs)


def instantiate(th: Thm, *values: Term | Number) -> Thm:
    """From ∀x. φ: φ at the values."""
    (body,) = _head(th, "forall")
    sorts = th.concl.data
    assert isinstance(sorts, tuple)
    if len(values) != len(sorts):
        refuse(f"{len(sorts)} values are needed: got {len(values)}")
    ts = tuple(lift(v, s) for v, s in zip(values, sorts, strict=True))
    if any(t.sort != s or t.loose for t, s in zip(ts, sorts, strict=True)):
        refuse(f"the values have other sorts than {[str(s) for s in sorts]}")
    return conclude("instantiate", open_body(body, ts), (th,), ts)


def refl(t: Term) -> Thm:
    """T = t."""
    return conclude("refl", eq(t, t), (), (t,))


def sym(th: Thm) -> Thm:
    """From a = b: b = a."""
    a, b = _head(th, "=")
    return conclude("sym", eq(b, a), (th,))


def trans(ab: Thm, bc: Thm) -> Thm:
    """From a = b and b = c: a = c."""
    (a, b), (b2, c) = _head(ab, "="), _head(bc, "=")
    if b is not b2:
        refuse(f"the middles differ: {b!r} and {b2!r}")
    return conclude("trans", eq(a, c), (ab, bc))


def congr(t: Term, *ths: Thm) -> Thm:
    """From equations for the parts of t: t = t with the parts replaced."""
    if t.op in BINDERS or len(ths) != len(t.args):
        refuse("congruence takes one equation for every part of a term")
    sides = [_head(th, "=") for th in ths]
    if any(left is not a for (left, _), a in zip(sides, t.args, strict=True)):
        refuse("an equation is not about the part it replaces")
    new = make(t.op, [right for _, right in sides], t.data) if ths else t
    return conclude("congr", eq(t, new), ths, (t,))


def abstract(variables: Iterable[Term], th: Thm) -> Thm:
    """From Γ ⊢ a = b, x not free in Γ: Γ ⊢ λx. a = λx. b."""
    vs = tuple(variables)
    a, b = _head(th, "=")
    if any(v in h.free for v in vs for h in th.hyps):
        refuse("a variable that a hypothesis speaks of cannot be abstracted")
    return conclude("abstract", eq(bind("lam", vs, a), bind("lam", vs, b)), (th,), vs)


def ring(a: Term, b: Term) -> Thm:
    """A = b, when both are the same polynomial."""
    if polynomial.poly(a, {}) != polynomial.poly(b, {}):
        refuse(f"not the same polynomial: {a!r} and {b!r}")
    return conclude("ring", eq(a, b), (), (a, b))


def certificate(
    goal: Term, by: Sequence[Thm], proof: Mapping[tuple[bool, ...], Any]
) -> Thm:
    """The goal, by one checked certificate per case of its `ite` conditions.

    `proof` maps the truth values of the conditions to one list of entries for each
    branch of the negated goal.
    """
    known = [genuine(p).concl for p in by]
    where = polynomial.conditions([*known, statement(goal)])
    frozen = {c: tuple(tuple(Entry(*e) for e in b) for b in proof[c]) for c in proof}
    for bits in range(2 ** len(where)):
        case = tuple(bool(bits >> i & 1) for i in range(len(where)))
        facts = case_facts(known, where, case)
        branches = polynomial.branches(goal, dict(zip(where, case, strict=True)))
        found = frozen.get(case, ())
        if len(found) != len(branches) or not all(
            polynomial.refutes(facts + more, entries)
            for more, entries in zip(branches, found, strict=True)
        ):
            refuse(f"the certificate does not prove {goal!r} in case {case}")
    return conclude("certificate", goal, by, (goal, tuple(frozen.items())))


def case_facts(
    known: Sequence[Term], where: Sequence[Term], case: Sequence[bool]
) -> list[polynomial.Fact]:
    """The polynomial facts of one case: what is known, then the conditions."""
    cases = dict(zip(where, case, strict=True))
    facts = [f for k in known for f in polynomial.facts_of(k, True, cases)]
    return facts + [
        f for c, holds in cases.items() for f in polynomial.facts_of(c, holds, cases)
    ]


def ground(goal: Term, by: Sequence[Thm] = ()) -> Thm:
    """The goal, if z3 and cvc5 both say it follows from `by` without quantifiers."""
    known = [genuine(p).concl for p in by]
    verdict = smt.ask(smt.to_text(known, statement(goal)))
    if verdict != ("unsat", "unsat"):
        refuse(f"z3 says {verdict[0]}, cvc5 says {verdict[1]}: {goal!r}")
    return conclude("ground", goal, by, (goal,))
