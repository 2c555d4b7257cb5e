"""KDA: a sequence may be cut anywhere, each part starting from the memory before it."""

from collections.abc import Mapping

from k3.logic import kernel, rewrite
from k3.logic.auto import (
    at_next,
    at_zero,
    close,
    exact,
    lemma,
    nat_induction,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import INT
from k3.logic.syntax import conj, eq, forall, implies, integer, lam, var
from k3.logic.terms import Term
from k3.proof.chunk import STATE, alpha, beta, i, k, n, s, t, v
from k3.proof.theorem import Theorem, Theorems

cut = var("cut", INT)
LATER = [lam([t, i], x(cut + t, i)) for x in (alpha, k)]
TOKENS = [LATER[0], LATER[1], *(lam([t], x(cut + t)) for x in (beta, v))]
EVERY = [n, alpha, k, beta, v, s, cut, t]


def _whole(t: Term) -> Term:
    return STATE(n, alpha, k, beta, v, s, cut + t)


def _rest(start: Term, t: Term) -> Term:
    return STATE(n, *TOKENS, start, t)


def _cut(start: Term) -> Term:
    inside = conj(cut >= 0, t >= 0)
    return forall([*EVERY, i], implies(inside, eq(_whole(t)(i), _rest(start, t)(i))))


def cut_anywhere() -> Term:
    """The memory after any tokens is the memory of the later ones alone, started from
    that of the earlier ones: with the chunk form of each part, any cut into chunks is
    the recurrence.
    """
    return _cut(STATE(n, alpha, k, beta, v, s, cut))


@lemma
def _prove_cut() -> Thm:
    (given,) = suppose(conj(cut >= 0, t >= 0))
    first, last = (kernel.conj_elim(given, part) for part in (0, 1))
    (start,) = suppose(cut >= 0)
    tokens = [n, alpha, k, beta, v, s]
    before = STATE(*tokens, cut)

    def goal(t: Term) -> Term:
        return eq(_whole(t), _rest(before, t))

    def renamed(a: Term, b: Term) -> Thm:
        same = [kernel.refl(x) for x in tokens]
        return kernel.congr(STATE(*tokens, a), *same, kernel.ring(a, b))

    def step(t: Term, natural: Thm, smaller: Thm) -> Thm:
        law = use(at_next(STATE, cut + t, *tokens), exact(cut + t >= 0, start, natural))
        later = use(at_next(STATE, t, n, *TOKENS, before), natural)
        same = eq(law.concl.args[1], later.concl.args[1])
        middle = rewrite.equal(same, [smaller])  # the memories before are equal
        th = kernel.trans(renamed(cut + (t + 1), cut + t + 1), law)
        return kernel.trans(kernel.trans(th, middle), kernel.sym(later))

    zero = at_zero(STATE, n, *TOKENS, before)
    base = kernel.trans(renamed(cut + integer(0), cut), kernel.sym(zero))
    th = nat_induction(t, goal(t), base, step)
    th = close([cut], [start], th)
    memory = kernel.mp(use(th(cut), first)(t), last)
    at = kernel.congr(_whole(t)(i), memory, kernel.refl(i))
    return close([*EVERY, i], [given], at)


def _mutants() -> Mapping[str, Term]:
    return {"the later part starts anew": _cut(s)}


THEOREMS: Theorems = {
    "cut_anywhere": Theorem(
        statement=cut_anywhere,
        proof=_prove_cut,
        scope="all lengths and cuts, key widths, keys, values, retentions and memories",
        mutants=_mutants,
    ),
}
