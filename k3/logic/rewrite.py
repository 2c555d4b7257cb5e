"""Rewriting that produces a proof: unfold, use equations, compare normal forms.

Untrusted; it only calls equality rules, so what it proves needs no solver.
"""

from collections.abc import Sequence

from k3.errors import ProofError
from k3.logic import kernel, match
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL
from k3.logic.terms import Term, make

DEPTH = 60


class Rule:
    """An equation read from left to right, perhaps under premises."""

    def __init__(self, th: Thm) -> None:
        self.th = th
        forall = th.concl.op == "forall"
        self.holes, body = match.opened(th.concl) if forall else ((), th.concl)
        self.set = frozenset(self.holes)
        self.premises: list[Term] = []
        while body.op == "=>":
            self.premises.append(body.args[0])
            body = body.args[1]
        self.left = body.args[0] if body.op == "=" else None

    def apply(self, t: Term, known: dict[Term, Thm]) -> Thm | None:
        """t = t', or None if the equation is not about t."""
        if self.left is None or self.left.op in ("free", "lit", "nil"):
            return None
        found = match.match(self.left, t, self.set, {})
        if found is None or not self.set <= found.keys():
            return None
        th = self.th(*(found[h] for h in self.holes)) if self.holes else self.th
        for _ in self.premises:
            if th.concl.args[0] not in known:
                return None
            th = kernel.mp(th, known[th.concl.args[0]])
        return th


class Rewriter:
    """Normal forms under a list of equations and known facts."""

    def __init__(self, equations: Sequence[Thm], facts: Sequence[Thm] = ()) -> None:
        self.rules = [Rule(p) for th in equations for p in match.pieces(th)]
        self.known = {th.concl: th for th in facts}
        self.memo: dict[Term, Thm] = {}

    def normal(self, t: Term, depth: int = 0) -> Thm:
        """t = its normal form."""
        if t not in self.memo:
            self.memo[t] = self._normal(t, depth)
        return self.memo[t]

    def _normal(self, t: Term, depth: int) -> Thm:
        if depth > DEPTH:
            raise ProofError("rewriting does not come to an end")
        th = self._inside(t, depth)
        new = th.concl.args[1]
        if new is not t and new.op != t.op:
            return kernel.trans(th, self.normal(new, depth + 1))
        for rule in self.rules:
            step = rule.apply(new, self.known)
            if step is not None and step.concl.args[1] is not new:
                th = kernel.trans(th, step)
                return kernel.trans(th, self.normal(step.concl.args[1], depth + 1))
        return th

    def _inside(self, t: Term, depth: int) -> Thm:
        if t.op == "lam":
            vs, body = match.opened(t)
            inner = self.normal(body, depth + 1)
            return kernel.abstract(vs, inner)
        if not t.args or t.op == "forall":
            return kernel.refl(t)
        parts = [self.normal(a, depth + 1) for a in t.args]
        if all(p.concl.args[0] is p.concl.args[1] for p in parts):
            return kernel.refl(t)
        return kernel.congr(t, *parts)


def equal(goal: Term, equations: Sequence[Thm], facts: Sequence[Thm] = ()) -> Thm:
    """An equation, by bringing both sides to one normal form."""
    if goal.op != "=":
        raise ProofError(f"rewriting proves equations: got {goal!r}")
    rewriter = Rewriter(equations, facts)
    left, right = (rewriter.normal(side) for side in goal.args)
    a, b = left.concl.args[1], right.concl.args[1]
    if a is not b:
        middle = kernel.ring(a, b) if a.sort in (INT, REAL) else _pointwise(a, b)
        left = kernel.trans(left, middle)
    return kernel.trans(left, kernel.sym(right))


def holds(goal: Term, equations: Sequence[Thm], facts: Sequence[Thm]) -> Thm:
    """A statement whose normal form is a known fact."""
    th = Rewriter(equations, facts).normal(goal)
    known = {f.concl: f for f in facts}
    new = th.concl.args[1]
    if new not in known:
        raise ProofError(f"not among the facts: {new!r}")
    return kernel.eq_mp(kernel.sym(th), known[new])


def _pointwise(a: Term, b: Term) -> Thm:
    """Equal terms that differ in arithmetic parts only."""
    if a is b:
        return kernel.refl(a)
    if a.sort in (INT, REAL):
        return kernel.ring(a, b)
    if a.op != b.op or a.data != b.data or len(a.args) != len(b.args) or not a.args:
        raise ProofError(f"different normal forms:\n  {a!r}\n  {b!r}")
    if a.op == "lam":
        vs, body = match.opened(a)
        return kernel.abstract(vs, _pointwise(body, make("call", (b, *vs))))
    parts = [_pointwise(x, y) for x, y in zip(a.args, b.args, strict=True)]
    return kernel.congr(a, *parts)
