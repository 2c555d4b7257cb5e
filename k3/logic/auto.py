"""Tactics: they search, the kernel decides. Untrusted."""

from collections.abc import Callable, Sequence
from functools import wraps

from k3.errors import ProofError
from k3.logic import constants, kernel, psatz, rewrite, smt
from k3.logic.induction import induct_list, induct_nat
from k3.logic.kernel import Thm
from k3.logic.match import match, opened, prenex
from k3.logic.match import parts as parts
from k3.logic.saturate import ROUNDS, saturate
from k3.logic.sorts import INT, REAL
from k3.logic.syntax import conj, cons, forall, fresh, implies, integer, nil
from k3.logic.terms import Symbol, Term, subst


def lemma(prove: Callable[[], Thm]) -> Callable[[], Thm]:
    """A proof that runs once in a session."""

    @wraps(prove)
    def once() -> Thm:
        memo = smt.current().memo
        if prove not in memo:
            memo[prove] = prove()
        th: Thm = memo[prove]
        return th

    return once


def suppose(*phis: Term) -> list[Thm]:
    """One assumption for each statement."""
    return [kernel.assume(p) for p in phis]


def close(variables: Sequence[Term], hyps: Sequence[Thm], th: Thm) -> Thm:
    """∀variables. hyps ⇒ th."""
    for h in reversed(hyps):
        th = kernel.discharge(h.concl, th)
    return kernel.generalize(variables, th) if variables else th


def have(goal: Term, *by: Thm, degree: int = 1) -> Thm:
    """The goal from these facts: by a certificate if there is one, else by solvers."""
    if goal.op == "and":
        return kernel.conj_intro(*(have(g, *by, degree=degree) for g in goal.args))
    facts = [p for th in by for p in parts(th)]
    for f in facts:
        if f.concl is goal:
            return f
    arithmetic = goal.op in ("<=", "<") or (
        goal.op == "=" and goal.args[0].sort in (INT, REAL)
    )
    if arithmetic:
        numeric = [f for f in facts if _speaks_of_numbers(f.concl)]
        try:
            return psatz.prove(goal, numeric, degree=degree)
        except ProofError:
            pass
    return kernel.ground(goal, by)


def exact(goal: Term, *by: Thm, degree: int = 1) -> Thm:
    """The goal from these facts, by a certificate only."""
    return psatz.prove(goal, [p for th in by for p in parts(th)], degree=degree)


def _speaks_of_numbers(t: Term) -> bool:
    if t.op == "not":
        return _speaks_of_numbers(t.args[0])
    if t.op == "=":
        return t.args[0].sort in (INT, REAL)
    return t.op in ("<=", "<")


def use(rule: Thm, *premises: Thm) -> Thm:
    """The conclusion of an implication, its premises proved from these facts."""
    while rule.concl.op == "=>":
        rule = kernel.mp(rule, have(rule.concl.args[0], *premises))
    return rule


def unfold(symbol: Symbol, *args: Term | int) -> Thm:
    """The defining equation of an explicit definition at these arguments."""
    (law,) = constants.laws(symbol)
    return law(*args) if args else law


def at_zero(symbol: Symbol, *others: Term | int) -> Thm:
    """The first equation of a recursive definition."""
    law = constants.laws(symbol)[0]
    return law(*others) if others else law


def at_next(symbol: Symbol, *values: Term | int) -> Thm:
    """The second equation: the smaller parts first, then the other parameters."""
    return constants.laws(symbol)[1](*values)


def restate(goal: Term, th: Thm) -> Thm:
    """The goal, which is an instance of the theorem up to the order of variables."""
    hyps: list[Thm] = []
    strip: list[tuple[Term, ...] | Thm] = []
    while goal.op in ("forall", "=>"):
        if goal.op == "forall":
            vs, goal = opened(goal)
            strip.append(vs)
        else:
            hyps += suppose(goal.args[0])
            strip.append(hyps[-1])
            goal = goal.args[1]
    th = specialized(th, goal, *hyps)
    for s in reversed(strip):
        if isinstance(s, tuple):
            th = kernel.generalize(s, th)
        else:
            th = kernel.discharge(s.concl, th)
    return th


def specialized(th: Thm, goal: Term, *facts: Thm) -> Thm:
    """The instance of a theorem that concludes the goal, premises from the facts."""
    th = prenex(th)
    holes, body = opened(th.concl) if th.concl.op == "forall" else ((), th.concl)
    while body.op == "=>":
        body = body.args[1]
    found = match(body, goal, frozenset(holes), {})
    if found is None or not set(holes) <= found.keys():
        raise ProofError(f"{th!r} does not conclude {goal!r}")
    return use(th(*(found[h] for h in holes)) if holes else th, *facts)


def auto(
    goal: Term,
    by: Sequence[Thm] = (),
    defs: Sequence[Symbol] = (),
    rounds: int = ROUNDS,
) -> Thm:
    """The goal: strip quantifiers and premises, rewrite, else saturate and ask."""
    if goal.op == "forall":
        vs, body = opened(goal)
        return kernel.generalize(vs, auto(body, by, defs, rounds))
    if goal.op == "=>":
        (h,) = suppose(goal.args[0])
        inner = auto(goal.args[1], [*by, *parts(h)], defs, rounds)
        return kernel.discharge(h.concl, inner)
    if goal.op == "and":
        return kernel.conj_intro(*(auto(g, by, defs, rounds) for g in goal.args))
    if goal.op in ("=", "call", "const"):
        prover = rewrite.equal if goal.op == "=" else rewrite.holds
        equations = [law for d in defs for law in constants.laws(d)]
        try:
            return prover(goal, [*equations, *by], by)
        except ProofError:
            pass
    if goal.op in ("<=", "<") and defs:
        try:
            return _certified(goal, by, defs, rounds)
        except ProofError:
            pass
    return have(goal, *saturate(goal, by, defs, rounds))


def _certified(
    goal: Term, by: Sequence[Thm], defs: Sequence[Symbol], rounds: int
) -> Thm:
    """Definitions unfolded in goal and facts, then a certificate."""
    rewriter = rewrite.Rewriter([law for d in defs for law in constants.laws(d)])
    same = rewriter.normal(goal)
    new = same.concl.args[1]
    facts = [f for f in saturate(new, by, (), rounds) if _speaks_of_numbers(f.concl)]
    facts = [kernel.eq_mp(rewriter.normal(f.concl), f) for f in facts]
    return kernel.eq_mp(kernel.sym(same), exact(new, *facts))


def by_induction(
    x: Term,
    phi: Term,
    by: Sequence[Thm] = (),
    defs: Sequence[Symbol] = (),
    rounds: int = ROUNDS,
) -> Thm:
    """∀x. φ by induction on a list or (with 0 ≤ x) an integer."""
    if x.sort == INT:
        n = fresh(str(x.data), INT)
        at, up = {x: integer(0)}, {x: n + 1}
        step = implies(conj(integer(0) <= n, subst(phi, {x: n})), subst(phi, up))
        base = auto(subst(phi, at), by, defs, rounds)
        return induct_nat(x, phi, base, auto(forall([n], step), by, defs, rounds))
    h, t = fresh("h", x.sort.args[0]), fresh("t", x.sort)
    base = auto(subst(phi, {x: nil(h.sort)}), by, defs, rounds)
    step = implies(subst(phi, {x: t}), subst(phi, {x: cons(h, t)}))
    return induct_list(x, phi, base, auto(forall([h, t], step), by, defs, rounds))


def list_induction(
    x: Term, phi: Term, base: Thm, step: Callable[[Term, Term, Thm], Thm]
) -> Thm:
    """∀x. φ, where `step(head, tail, φ[tail])` proves φ[head :: tail]."""
    h, t = fresh("h", x.sort.args[0]), fresh("t", x.sort)
    (smaller,) = suppose(subst(phi, {x: t}))
    up = close([h, t], [smaller], step(h, t, smaller))
    return induct_list(x, phi, base, up)


def nat_induction(
    n: Term, phi: Term, base: Thm, step: Callable[[Term, Thm, Thm], Thm]
) -> Thm:
    """∀n ≥ 0. φ, where `step(m, 0 ≤ m, φ[m])` proves φ[m + 1]."""
    m = fresh(str(n.data), INT)
    (given,) = suppose(conj(integer(0) <= m, subst(phi, {n: m})))
    th = step(m, kernel.conj_elim(given, 0), kernel.conj_elim(given, 1))
    return induct_nat(n, phi, base, close([m], [given], th))


def rewritten(goal: Term, equations: Sequence[Thm], *by: Thm, degree: int = 1) -> Thm:
    """The goal, whose normal form under the equations follows from the facts."""
    same = rewrite.Rewriter(equations).normal(goal)
    th = have(same.concl.args[1], *by, degree=degree)
    return kernel.eq_mp(kernel.sym(same), th)
