"""Induction over lists and over the natural numbers. Trusted."""

from k3.logic.kernel import Thm, conclude, genuine
from k3.logic.signature import refuse
from k3.logic.sorts import INT, Sort
from k3.logic.syntax import conj, cons, forall, implies, integer, nil
from k3.logic.terms import Term, bind, make, subst


def induct_list(x: Term, phi: Term, base: Thm, step: Thm) -> Thm:
    """From φ[nil] and ∀h t. φ[t] ⇒ φ[h::t]: ∀x. φ."""
    if x.op != "free" or x.sort.head != "List":
        refuse("this induction is over a list variable")
    h, t = _apart("h", x.sort.args[0], phi), _apart("t", x.sort, phi)
    smaller, larger = subst(phi, {x: t}), subst(phi, {x: cons(h, t)})
    wanted = bind("forall", (h, t), implies(smaller, larger))
    at_zero = subst(phi, {x: nil(x.sort.args[0])})
    return _induct("induct_list", (x, phi), (at_zero, wanted), (base, step), phi)


def induct_nat(n: Term, phi: Term, base: Thm, step: Thm) -> Thm:
    """From φ[0] and ∀n. 0 ≤ n ∧ φ[n] ⇒ φ[n+1]: ∀n. 0 ≤ n ⇒ φ."""
    if n.op != "free" or n.sort != INT:
        refuse("this induction is over an integer variable")
    m = _apart("n", INT, phi)
    smaller, larger = subst(phi, {n: m}), subst(phi, {n: m + 1})
    wanted = bind("forall", (m,), implies(conj(integer(0) <= m, smaller), larger))
    at_zero = subst(phi, {n: integer(0)})
    result = implies(integer(0) <= n, phi)
    return _induct("induct_nat", (n, phi), (at_zero, wanted), (base, step), result)


def _apart(name: str, sort: Sort, phi: Term) -> Term:
    """A variable that φ does not speak of: a captured one would weaken the step."""
    while (v := make("free", (), name, sort)) in phi.free:
        name += "'"
    return v


def _induct(
    rule: str,
    data: tuple[Term, Term],
    wanted: tuple[Term, Term],
    given: tuple[Thm, Thm],
    result: Term,
) -> Thm:
    for th, phi in zip(given, wanted, strict=True):
        if genuine(th).concl is not phi:
            refuse(f"the induction needs {phi!r}: got {th.concl!r}")
        if any(data[0] in h.free for h in th.hyps):
            refuse("a hypothesis speaks of the induction variable")
    return conclude(rule, forall((data[0],), result), given, data)
