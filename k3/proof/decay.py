"""The cumulative retention of Eq. 3, over the tokens between two places."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    close,
    exact,
    have,
    lemma,
    nat_induction,
    restate,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import conj, eq, forall, implies, integer, ite, real, var
from k3.logic.terms import Term
from k3.proof.reals import quotient_of
from k3.proof.substitution import times
from k3.proof.theorem import Theorem, Theorems

t, j = var("t", INT), var("j", INT)
rate = var("rate", fun(INT, REAL))
ZERO = integer(0)

DECAY = recursive(  # the product of the rates of the tokens j .. t − 1
    "decay",
    [rate, j, t],
    REAL,
    lambda rate, j: real(1),
    lambda t, rec, rate, j: ite(j <= t, rec(rate, j) * rate(t), real(1)),
)


def _quotient(first: Term) -> Term:
    inside = conj(j >= 0, j <= t, ~eq(first, 0))
    goal = eq(DECAY(rate, j, t), DECAY(rate, ZERO, t) / first)
    return forall([rate, j, t], implies(inside, goal))


def is_quotient() -> Term:
    """γ over the tokens between is the quotient Γ_t / Γ_j of cumulative retentions."""
    return _quotient(DECAY(rate, ZERO, j))


@lemma
def _splits() -> Thm:
    """Γ_t = γ Γ_j, also where some are zero."""
    first = DECAY(rate, ZERO, j)

    def goal(t: Term) -> Term:
        same = eq(DECAY(rate, ZERO, t), DECAY(rate, j, t) * first)
        return forall([j], implies(conj(j >= 0, j <= t), same))

    def step(t: Term, natural: Thm, smaller: Thm) -> Thm:
        (inside,) = suppose(conj(j >= 0, j <= t + 1))
        whole, part = (use(at_next(DECAY, t, rate, x), natural) for x in (ZERO, j))
        long, short = whole.concl.args[0], part.concl.args[0]
        same = eq(long, short * first)
        (yes,) = suppose(j <= t)
        whole = kernel.ground(
            eq(long, DECAY(rate, ZERO, t) * rate(t)), [whole, natural]
        )
        grown = kernel.ground(eq(short, DECAY(rate, j, t) * rate(t)), [part, yes])
        before = times(rate(t), use(smaller(j), yes, inside))
        there = exact(same, whole, before, times(first, grown))
        (no,) = suppose(~(j <= t))
        one = kernel.ground(eq(short, 1), [part, no])
        here = exact(same, _renamed(have(eq(j, t + 1), no, inside)), times(first, one))
        return close([j], [inside], kernel.by_cases(j <= t, there, here))

    (inside,) = suppose(conj(j >= 0, j <= 0))
    same = eq(DECAY(rate, ZERO, ZERO), DECAY(rate, j, ZERO) * first)
    one = times(first, at_zero(DECAY, rate, j))
    base = exact(same, _renamed(exact(eq(j, 0), inside)), one)
    return nat_induction(t, goal(t), close([j], [inside], base), step)


def _renamed(same: Thm) -> Thm:
    """Γ at j is Γ at what j equals."""
    parts = [kernel.refl(rate), kernel.refl(ZERO), same]
    return kernel.congr(DECAY(rate, ZERO, j), *parts)


@lemma
def _prove_quotient() -> Thm:
    (given,) = suppose(conj(j >= 0, j <= t, ~eq(DECAY(rate, ZERO, j), 0)))
    natural = exact(t >= 0, given)
    split = use(use(_splits()(t), natural)(j), given)
    whole, first = DECAY(rate, ZERO, t), DECAY(rate, ZERO, j)
    back = quotient_of(whole, first, given)
    gap = DECAY(rate, j, t) - whole / first
    none = exact(eq(gap * first, 0), split, back)
    th = kernel.ground(eq(DECAY(rate, j, t), whole / first), [none, given])
    return restate(is_quotient(), close([rate, j, t], [given], th))


def _mutants() -> Mapping[str, Term]:
    return {"one token late": _quotient(DECAY(rate, ZERO, j + 1))}


THEOREMS: Theorems = {
    "is_quotient": Theorem(
        statement=is_quotient,
        proof=_prove_quotient,
        scope="all lengths, all rates whose product up to j is not zero",
        mutants=_mutants,
    ),
}
