"""Softmax: positive weights of sum one, blind to a common offset."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.analysis import EXP, EXP_ADD
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    exact,
    have,
    lemma,
    list_induction,
    restate,
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
    nil,
    var,
)
from k3.logic.terms import Symbol, Term
from k3.proof.lists import mapped, total
from k3.proof.reals import (
    exp_pos,
    product_nonneg,
    product_pos,
    quotient_of,
)
from k3.proof.sums import (
    every,
)
from k3.proof.theorem import Theorem, Theorems

scores, weights = var("scores", list_of(REAL)), var("weights", list_of(REAL))
x, y, c = var("x", REAL), var("y", REAL), var("c", REAL)
ADD, MAP, ALL_OF = total(REAL), mapped(REAL, REAL), every(REAL)
MASS = define("mass[probability]", [scores], ADD(lam([x], EXP(x)), scores))
SOFTMAX = define(
    "softmax[probability]",
    [scores],
    MAP(lam([x], EXP(x) / MASS(scores)), scores),
)
SUM_ALL = define("sum[probability]", [weights], ADD(lam([x], x), weights))


@lemma
def mass_nonneg() -> Thm:
    """Σ e^x ≥ 0."""
    mass = ADD(lam([x], EXP(x)), scores)
    return by_induction(scores, mass >= 0, by=[exp_pos()], defs=[ADD])


@lemma
def mass_positive() -> Thm:
    """Σ e^x > 0 over a list that is not empty."""
    law = at_next(ADD, x, scores, lam([x], EXP(x)))
    facts = [unfold(MASS, cons(x, scores)), law, mass_nonneg()(scores), exp_pos()(x)]
    return kernel.generalize([x, scores], exact(MASS(cons(x, scores)) > 0, *facts))


def shares_sum(image: Term, r: Term) -> Term:
    """Σ of image(x) / r over the scores, times r, is Σ of image(x)."""
    divided = MAP(lam([x], image / r), scores)
    whole = ADD(lam([x], image), scores)
    return eq(ADD(lam([x], x), divided) * r, whole)


def sums_back(image: Term) -> Thm:
    """∀r > 0, scores. Shares of the images add up to the images."""
    r = var("r", REAL)
    hyps = suppose(r > 0)
    whole = kernel.generalize([x], quotient_of(image, r, *hyps))
    goal = shares_sum(image, r)
    th = by_induction(scores, goal, by=[whole, *hyps], defs=[ADD, MAP])
    return close([r], hyps, th)


def softmax_sums_to_one() -> Term:
    """Softmax weights of at least one score add up to 1."""
    weights = SOFTMAX(cons(x, scores))
    return forall([x, scores], eq(SUM_ALL(weights), 1))


@lemma
def _prove_softmax_sum() -> Thm:
    whole = cons(x, scores)
    mass, positive = MASS(whole), mass_positive()(x, scores)
    back = kernel.mp(sums_back(EXP(x))(mass), positive)(whole)
    th = is_one(SOFTMAX(whole), back, positive, unfold(MASS, whole), SOFTMAX)
    return kernel.generalize([x, scores], th)


def is_one(value: Term, back: Thm, positive: Thm, sums: Thm, symbol: Symbol) -> Thm:
    """Σ = 1, from Σ·r = r and r > 0."""
    add, law = unfold(SUM_ALL, value), unfold(symbol, value.args[0])
    same = kernel.congr(add.concl.args[1], kernel.refl(lam([x], x)), law)
    r = positive.concl.args[1]
    raw = same.concl.args[1]
    product = exact(eq((raw - 1) * r, 0), back, sums)
    return have(eq(SUM_ALL(value), 1), have(eq(raw, 1), product, positive), add, same)


def softmax_in_unit() -> Term:
    """Every softmax weight is positive and at most 1."""
    unit = lam([x], conj(x > 0, x <= 1))
    return forall([y, scores], ALL_OF(unit, SOFTMAX(cons(y, scores))))


@lemma
def _prove_softmax_unit() -> Thm:
    r = var("r", REAL)
    hyps = suppose(r > 0)
    e = EXP(x)
    share, positive = quotient_of(e, r, *hyps), exp_pos()(x)
    low = positive_quotient(e, r, share, positive, *hyps)
    most = suppose(e <= r)
    high = at_most_one(e, r, share, *most, *hyps)
    one = close([x], most, kernel.conj_intro(low, high))
    unit = lam([x], conj(x > 0, x <= 1))
    images = MAP(lam([x], e / r), scores)
    phi = implies(ADD(lam([x], e), scores) <= r, ALL_OF(unit, images))
    by = [one, exp_pos(), mass_nonneg(), *hyps]
    th = by_induction(scores, phi, by=by, defs=[ADD, MAP, ALL_OF])
    every_list = close([r], hyps, th)
    whole = cons(y, scores)
    mass, positive = MASS(whole), mass_positive()(y, scores)
    at = kernel.mp(every_list(mass), positive)(whole)
    at = kernel.mp(at, have(at.concl.args[0], unfold(MASS, whole)))
    law = unfold(SOFTMAX, whole)
    term = ALL_OF(unit, SOFTMAX(whole))
    same = kernel.congr(term, kernel.refl(unit), law)
    th = kernel.eq_mp(kernel.sym(same), at)
    return kernel.generalize([y, scores], th)


def positive_quotient(a: Term, r: Term, share: Thm, *by: Thm) -> Thm:
    """A / r > 0."""
    (under,) = suppose(a / r <= 0)
    no = exact(a / r > 0, product_nonneg(-(a / r), r, under, *by), share, *by)
    yes = exact(a / r > 0, *suppose(~under.concl))
    return kernel.by_cases(under.concl, no, yes)


def at_most_one(a: Term, r: Term, share: Thm, *by: Thm) -> Thm:
    """A / r ≤ 1 for a ≤ r."""
    (over,) = suppose(a / r > 1)
    no = exact(a / r <= 1, product_pos(a / r - 1, r, over, *by), share, *by)
    yes = exact(a / r <= 1, *suppose(~over.concl))
    return kernel.by_cases(over.concl, no, yes)


def softmax_ignores_offset() -> Term:
    """Adding one number to all scores changes no weight; so subtracting the largest
    first, as programs do, is the same function.
    """
    moved = MAP(lam([x], x + c), scores)
    return forall([c, scores], eq(SOFTMAX(moved), SOFTMAX(scores)))


@lemma
def _moved_mass() -> Thm:
    """The mass of moved scores is the mass times e^c."""
    moved = MAP(lam([x], x + c), scores)
    e = lam([x], EXP(x))
    goal = eq(ADD(e, moved), ADD(e, scores) * EXP(c))
    split = kernel.generalize([x], EXP_ADD(x, c))
    th = by_induction(scores, goal, by=[split], defs=[ADD, MAP])
    return kernel.generalize([c], th)


@lemma
def _moved_weights() -> Thm:
    """With e^c times the mass below, moved scores have the same weights."""
    r = var("r", REAL)
    hyps = suppose(r > 0)
    grown = r * EXP(c)
    positive = product_pos(r, EXP(c), *hyps, exp_pos()(c))
    left, right = EXP(x + c) / grown, EXP(x) / r
    shares = [
        quotient_of(EXP(x + c), grown, positive),
        quotient_of(EXP(x), r, *hyps),
    ]
    over_r = EXP(x) / r * r * EXP(c)
    scaled = kernel.congr(over_r, shares[1], kernel.refl(EXP(c)))
    split = EXP_ADD(x, c)
    product = exact(eq((left - right) * grown, 0), shares[0], scaled, split)
    same = kernel.generalize([x], have(eq(left, right), product, positive))
    moved = MAP(lam([x], x + c), scores)
    goal = eq(MAP(lam([x], EXP(x) / grown), moved), MAP(lam([x], EXP(x) / r), scores))
    th = by_induction(scores, goal, by=[same, *hyps], defs=[MAP])
    return close([c, r], hyps, th)


@lemma
def _prove_offset() -> Thm:
    def at(scores: Term) -> Term:
        moved = MAP(lam([x], x + c), scores)
        return eq(SOFTMAX(moved), SOFTMAX(scores))

    base = auto(at(nil(REAL)), defs=[SOFTMAX, MAP])

    def step(h: Term, tail: Term, _: Thm) -> Thm:
        whole = cons(h, tail)
        moved = MAP(lam([x], x + c), whole)
        mass = MASS(whole)
        sums = [unfold(MASS, whole), unfold(MASS, moved), _moved_mass()(c)(whole)]
        scaled = kernel.congr(mass * EXP(c), sums[0], kernel.refl(EXP(c)))
        grown = exact(eq(MASS(moved), mass * EXP(c)), scaled, *sums[1:])
        same = kernel.mp(_moved_weights()(c, mass), mass_positive()(h, tail))(whole)
        left, right = unfold(SOFTMAX, moved), unfold(SOFTMAX, whole)
        body = kernel.abstract(
            [x],
            kernel.congr(EXP(x) / MASS(moved), kernel.refl(EXP(x)), grown),
        )
        images = kernel.congr(left.concl.args[1], body, kernel.refl(moved))
        to_right = kernel.trans(kernel.trans(left, images), same)
        return kernel.trans(to_right, kernel.sym(right))

    th = kernel.generalize([c], list_induction(scores, at(scores), base, step))
    return restate(softmax_ignores_offset(), th)


def _softmax_mutants() -> Mapping[str, Term]:
    """Wrong variants of softmax_ignores_offset."""
    grown = MAP(lam([x], x * c), scores)
    return {
        "a common factor": forall(
            [c, scores], implies(c > 0, eq(SOFTMAX(grown), SOFTMAX(scores)))
        ),
    }


def _sum_mutants() -> Mapping[str, Term]:
    """Wrong variants of softmax_sums_to_one."""
    return {
        "of no score": forall([scores], eq(SUM_ALL(SOFTMAX(scores)), 1)),
    }


def _unit_mutants() -> Mapping[str, Term]:
    """Wrong variants of softmax_in_unit."""
    unit = lam([x], conj(x > 0, x < 1))
    strict = ALL_OF(unit, SOFTMAX(cons(y, scores)))
    return {"strictly below 1": forall([y, scores], strict)}


ANY = "any number of scores, at least one; all reals"
THEOREMS: Theorems = {
    "softmax_sums_to_one": Theorem(
        statement=softmax_sums_to_one,
        proof=_prove_softmax_sum,
        scope=ANY,
        mutants=_sum_mutants,
    ),
    "softmax_in_unit": Theorem(
        statement=softmax_in_unit,
        proof=_prove_softmax_unit,
        scope=ANY,
        mutants=_unit_mutants,
        hints={"strictly below 1": {"scores": ()}},
    ),
    "softmax_ignores_offset": Theorem(
        statement=softmax_ignores_offset,
        proof=_prove_offset,
        scope="any number of scores, all reals",
        mutants=_softmax_mutants,
    ),
}
