"""Normalized weights of the chosen experts: in (0, 1], of sum one."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    by_induction,
    close,
    exact,
    have,
    lemma,
    parts,
    suppose,
    unfold,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    implies,
    lam,
    var,
)
from k3.logic.terms import Term
from k3.proof.probability import (
    ADD,
    ALL_OF,
    MAP,
    SUM_ALL,
    at_most_one,
    is_one,
    positive_quotient,
    sums_back,
)
from k3.proof.reals import (
    quotient_of,
)
from k3.proof.theorem import Theorem, Theorems

weights = var("weights", list_of(REAL))
x, y, c = var("x", REAL), var("y", REAL), var("c", REAL)
NORMALIZED = define(
    "normalized[mixture]",
    [weights],
    MAP(lam([x], x / SUM_ALL(weights)), weights),
)


def chosen_weights() -> Term:
    """Positive scores of the chosen experts, divided by their sum, are weights in
    (0, 1] that add up to 1.
    """
    positive, unit = lam([x], x > 0), lam([x], conj(x > 0, x <= 1))
    chosen = cons(y, weights)
    shares = NORMALIZED(chosen)
    goal = conj(ALL_OF(unit, shares), eq(SUM_ALL(shares), 1))
    return forall([y, weights], implies(ALL_OF(positive, chosen), goal))


@lemma
def _prove_chosen() -> Thm:
    positive, unit = lam([x], x > 0), lam([x], conj(x > 0, x <= 1))
    chosen = cons(y, weights)
    (given,) = hyps = suppose(ALL_OF(positive, chosen))
    own, rest = parts(kernel.eq_mp(at_next(ALL_OF, y, weights, positive), given))
    plain = lam([x], x)
    nonneg = _positive_sum()(weights)
    tail = kernel.mp(nonneg, rest)
    law = unfold(SUM_ALL, chosen)
    r = SUM_ALL(chosen)
    more = exact(r > 0, law, at_next(ADD, y, weights, plain), own, tail)
    inside = kernel.mp(kernel.mp(_unit_shares()(r), more)(chosen), given)
    inside = kernel.mp(inside, have(inside.concl.args[0], law))
    form = unfold(NORMALIZED, chosen)
    term = ALL_OF(unit, NORMALIZED(chosen))
    same = kernel.congr(term, kernel.refl(unit), form)
    units = kernel.eq_mp(kernel.sym(same), inside)
    back = kernel.mp(sums_back(x)(r), more)(chosen)
    one = is_one(NORMALIZED(chosen), back, more, law, NORMALIZED)
    return close([y, weights], hyps, kernel.conj_intro(units, one))


@lemma
def _positive_sum() -> Thm:
    """Positive numbers have a sum ≥ 0."""
    given = ALL_OF(lam([x], x > 0), weights)
    goal = implies(given, ADD(lam([x], x), weights) >= 0)
    return by_induction(weights, goal, defs=[ADD, ALL_OF])


@lemma
def _unit_shares() -> Thm:
    """Shares of positive numbers in at least their sum are in (0, 1]."""
    r = var("r", REAL)
    hyps = suppose(r > 0)
    unit = lam([x], conj(x > 0, x <= 1))
    share = quotient_of(x, r, *hyps)
    inside = suppose(x > 0, x <= r)
    low = positive_quotient(x, r, share, inside[0], *hyps)
    high = at_most_one(x, r, share, inside[1], *hyps)
    one = close([x], inside, kernel.conj_intro(low, high))
    images = MAP(lam([x], x / r), weights)
    small = ADD(lam([x], x), weights) <= r
    given = ALL_OF(lam([x], x > 0), weights)
    phi = implies(given, small, ALL_OF(unit, images))
    by = [one, _positive_sum(), *hyps]
    th = by_induction(weights, phi, by=by, defs=[ADD, MAP, ALL_OF])
    return close([r], hyps, th)


def _chosen_mutants() -> Mapping[str, Term]:
    """Wrong variants of chosen_weights."""
    chosen = cons(y, weights)
    given = ALL_OF(lam([x], x >= 0), chosen)
    biased = NORMALIZED(MAP(lam([x], x + c), chosen))
    positive = ALL_OF(lam([x], x > 0), chosen)
    return {
        "scores may be 0": forall(
            [y, weights],
            implies(given, ALL_OF(lam([x], x > 0), NORMALIZED(chosen))),
        ),
        "weights of biased scores": forall(
            [c, y, weights], implies(c > 0, positive, eq(biased, NORMALIZED(chosen)))
        ),
    }


THEOREMS: Theorems = {
    "chosen_weights": Theorem(
        statement=chosen_weights,
        proof=_prove_chosen,
        scope="any number of chosen experts, at least one; all positive scores",
        mutants=_chosen_mutants,
    ),
}
