"""Speculative decoding: acceptance, total variation and losslessness of one step."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import by_induction, close, exact, have, lemma, restate, suppose
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of, pair_of
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    fst,
    implies,
    lam,
    maximum,
    minimum,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import total
from k3.proof.reals import quotient_of
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems

TOKEN = pair_of(REAL, REAL)  # target probability p, draft probability q
tokens, token = var("tokens", list_of(TOKEN)), var("token", TOKEN)
p, q = fst(token), snd(token)
ADD = total(TOKEN)


def _total(each: Term) -> Term:
    return ADD(lam([token], each), tokens)


TARGET, DRAFT = _total(p), _total(q)
ACCEPTANCE = _total(minimum(p, q))
DISTANCE = _total(absolute(p - q))
RESIDUAL = _total(maximum(p - q, 0))
BOTH_SUM_TO_ONE = conj(eq(TARGET, 1), eq(DRAFT, 1))


def acceptance_is_one_minus_distance() -> Term:
    """Σ min(p, q) = 1 − ½ Σ |p − q|: acceptance is 1 minus the total variation."""
    goal = eq(ACCEPTANCE, real(1) - DISTANCE / 2)
    return forall([tokens], implies(BOTH_SUM_TO_ONE, goal))


@lemma
def _overlap() -> Thm:
    goal = eq(ACCEPTANCE * 2, TARGET + DRAFT - DISTANCE)
    return by_induction(tokens, goal, defs=[ADD])


@lemma
def _prove_acceptance() -> Thm:
    hyps = suppose(BOTH_SUM_TO_ONE)
    goal = eq(ACCEPTANCE, real(1) - DISTANCE / 2)
    return close([tokens], hyps, exact(goal, _overlap()(tokens), *hyps))


def residual_is_rejection() -> Term:
    """Σ max(p − q, 0) = 1 − acceptance: the correction has exactly the missing mass."""
    goal = eq(RESIDUAL, real(1) - ACCEPTANCE)
    return forall([tokens], implies(eq(TARGET, 1), goal))


@lemma
def prove_residual() -> Thm:
    """The residual mass."""
    hyps = suppose(eq(TARGET, 1))
    th = by_induction(tokens, eq(RESIDUAL, TARGET - ACCEPTANCE), defs=[ADD])
    goal = eq(RESIDUAL, real(1) - ACCEPTANCE)
    return close([tokens], hyps, exact(goal, th(tokens), *hyps))


a, b = var("a", REAL), var("b", REAL)


def _emitted(correction: Term) -> Term:
    whole = minimum(a, b) + (real(1) - ACCEPTANCE) * correction
    premises = conj(eq(TARGET, 1), ACCEPTANCE < 1)
    return forall([tokens, a, b], implies(premises, eq(whole, a)))


def one_step_is_lossless() -> Term:
    """Accepted mass plus rejection times correction is the target probability of
    every token: min(p, q) + (1 − acceptance)·max(p − q, 0) / residual = p.
    """
    return _emitted(maximum(a - b, 0) / RESIDUAL)


@lemma
def _prove_lossless() -> Thm:
    hyps = suppose(conj(eq(TARGET, 1), ACCEPTANCE < 1))
    mass = kernel.mp(prove_residual()(tokens), kernel.conj_elim(hyps[0], 0))
    positive = exact(RESIDUAL > 0, mass, *hyps)
    share = maximum(a - b, 0) / RESIDUAL
    whole = quotient_of(maximum(a - b, 0), RESIDUAL, positive)
    same = kernel.congr(share * RESIDUAL, kernel.refl(share), mass)
    goal = eq(minimum(a, b) + (real(1) - ACCEPTANCE) * share, a)
    return close([tokens, a, b], hyps, exact(goal, whole, same))


def _nonneg(tokens: Term) -> Term:
    return every(TOKEN)(lam([token], conj(p >= 0, q >= 0)), tokens)


def acceptance_between() -> Term:
    """The acceptance rate of two distributions lies in [0, 1]."""
    premises = conj(BOTH_SUM_TO_ONE, _nonneg(tokens))
    goal = conj(ACCEPTANCE >= 0, ACCEPTANCE <= 1)
    return forall([tokens], implies(premises, goal))


@lemma
def _prove_between() -> Thm:
    hyps = suppose(conj(BOTH_SUM_TO_ONE, _nonneg(tokens)))
    inside = conj(ACCEPTANCE >= 0, ACCEPTANCE <= TARGET)
    defs = [ADD, every(TOKEN)]
    th = by_induction(tokens, implies(_nonneg(tokens), inside), defs=defs)
    at = kernel.mp(th(tokens), kernel.conj_elim(hyps[0], 1))
    goal = conj(ACCEPTANCE >= 0, ACCEPTANCE <= 1)
    return close([tokens], hyps, have(goal, at, *hyps))


def acceptance_one_iff_equal() -> Term:
    """All draft tokens are accepted exactly when the distributions are equal."""
    same = every(TOKEN)(lam([token], eq(p, q)), tokens)
    return forall([tokens], implies(BOTH_SUM_TO_ONE, eq(eq(ACCEPTANCE, 1), same)))


@lemma
def _prove_one_iff() -> Thm:
    hyps = suppose(BOTH_SUM_TO_ONE)
    equal = every(TOKEN)(lam([token], eq(p, q)), tokens)
    defs = [ADD, every(TOKEN)]
    nonneg = by_induction(tokens, DISTANCE >= 0, defs=defs)
    near = implies(eq(DISTANCE, 0), equal)
    there = by_induction(tokens, near, by=[nonneg], defs=defs)(tokens)
    back = by_induction(tokens, implies(equal, eq(DISTANCE, 0)), defs=defs)(tokens)
    overlap = _overlap()(tokens)
    (one,) = suppose(eq(ACCEPTANCE, 1))
    zero = exact(eq(DISTANCE, 0), overlap, one, *hyps)
    forward = kernel.discharge(one.concl, kernel.mp(there, zero))
    (same,) = suppose(equal)
    whole = exact(eq(ACCEPTANCE, 1), overlap, kernel.mp(back, same), *hyps)
    backward = kernel.discharge(equal, whole)
    th = kernel.iff_intro(forward, backward)
    return restate(acceptance_one_iff_equal(), close([tokens], hyps, th))


def acceptance_is_symmetric() -> Term:
    """Exchanging draft and target keeps the acceptance rate."""
    return forall([tokens], eq(ACCEPTANCE, _total(minimum(q, p))))


@lemma
def _prove_symmetric() -> Thm:
    goal = eq(ACCEPTANCE, _total(minimum(q, p)))
    return by_induction(tokens, goal, defs=[ADD])


EXAMPLE = (
    (Fraction(3, 4), Fraction(1, 4)),
    (Fraction(1, 4), Fraction(3, 4)),
)


def _acceptance_mutants() -> Mapping[str, Term]:
    whole = eq(ACCEPTANCE, real(1) - DISTANCE)
    unnormal = eq(ACCEPTANCE, real(1) - DISTANCE / 2)
    return {
        "without the half": forall([tokens], implies(BOTH_SUM_TO_ONE, whole)),
        "without normalization": forall([tokens], unnormal),
    }


def _lossless_mutants() -> Mapping[str, Term]:
    return {
        "residual not normalized": _emitted(maximum(a - b, 0)),
        "residual of the draft": _emitted(maximum(b - a, 0) / RESIDUAL),
    }


AT = {"tokens": EXAMPLE, "a": EXAMPLE[0][0], "b": EXAMPLE[0][1]}
ALL = "all vocabularies, all real probabilities"


def _residual_mutants() -> Mapping[str, Term]:
    """Wrong variants of residual_is_rejection."""
    whole = eq(TARGET, 1)
    return {
        "a target of any sum": forall([tokens], eq(RESIDUAL, real(1) - ACCEPTANCE)),
        "the accepted mass": forall([tokens], implies(whole, eq(RESIDUAL, ACCEPTANCE))),
    }


def _symmetric_mutants() -> Mapping[str, Term]:
    """Wrong variants of acceptance_is_symmetric."""
    return {
        "the larger probability": forall(
            [tokens], eq(ACCEPTANCE, _total(maximum(q, p)))
        ),
        "the residual, exchanged": forall(
            [tokens], eq(RESIDUAL, _total(maximum(q - p, 0)))
        ),
    }


def _between_mutants() -> Mapping[str, Term]:
    """Wrong variants of acceptance_between."""
    given = conj(BOTH_SUM_TO_ONE, _nonneg(tokens))
    free = implies(BOTH_SUM_TO_ONE, ACCEPTANCE >= 0)
    return {
        "strictly above 0": forall([tokens], implies(given, ACCEPTANCE > 0)),
        "strictly below 1": forall([tokens], implies(given, ACCEPTANCE < 1)),
        "probabilities of either sign": forall([tokens], free),
    }


def _equal_mutants() -> Mapping[str, Term]:
    """Wrong variants of acceptance_one_iff_equal."""
    same = every(TOKEN)(lam([token], eq(p, q)), tokens)
    half = eq(eq(ACCEPTANCE, Fraction(1, 2)), same)
    return {
        "a draft of any sum": forall(
            [tokens], implies(eq(TARGET, 1), eq(eq(ACCEPTANCE, 1), same))
        ),
        "an acceptance of one half": forall([tokens], implies(BOTH_SUM_TO_ONE, half)),
    }


APART = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
SIGNED = ((Fraction(2), Fraction(-1)), (Fraction(-1), Fraction(2)))


THEOREMS: Theorems = {
    "acceptance_is_one_minus_distance": Theorem(
        statement=acceptance_is_one_minus_distance,
        proof=_prove_acceptance,
        scope=ALL,
        mutants=_acceptance_mutants,
        hints={"without the half": AT},
    ),
    "residual_is_rejection": Theorem(
        statement=residual_is_rejection,
        proof=prove_residual,
        scope=ALL,
        mutants=_residual_mutants,
    ),
    "one_step_is_lossless": Theorem(
        statement=one_step_is_lossless,
        proof=_prove_lossless,
        scope=ALL,
        mutants=_lossless_mutants,
        hints={"residual not normalized": AT, "residual of the draft": AT},
    ),
    "acceptance_is_symmetric": Theorem(
        statement=acceptance_is_symmetric,
        proof=_prove_symmetric,
        scope=ALL,
        mutants=_symmetric_mutants,
    ),
    "acceptance_between": Theorem(
        statement=acceptance_between,
        proof=_prove_between,
        scope=ALL,
        mutants=_between_mutants,
        hints={
            "strictly above 0": {"tokens": APART},
            "probabilities of either sign": {"tokens": SIGNED},
        },
    ),
    "acceptance_one_iff_equal": Theorem(
        statement=acceptance_one_iff_equal,
        proof=_prove_one_iff,
        scope=ALL,
        mutants=_equal_mutants,
    ),
}
