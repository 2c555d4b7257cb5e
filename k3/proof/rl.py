"""On-policy distillation (MOPD): the clipped log-ratio reward."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.analysis import LOG
from k3.logic.auto import close, exact, have, lemma, suppose, unfold, use
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    implies,
    maximum,
    minimum,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.reals import log_one, quotient_of
from k3.proof.theorem import Theorem, Theorems

limit, x = var("limit", REAL), var("x", REAL)
teacher, student = var("teacher", REAL), var("student", REAL)
CLIP = define("clip", [limit, x], maximum(-limit, minimum(limit, x)))
REWARD = define(
    "reward", [limit, teacher, student], CLIP(limit, LOG(teacher / student))
)
EVERY = [limit, teacher, student]


def _within(limit_ok: Term, low: Term, high: Term) -> Term:
    value = REWARD(limit, teacher, student)
    return forall(EVERY, implies(limit_ok, conj(low <= value, value <= high)))


def reward_within_limits() -> Term:
    """The reward lies in [−limit, limit]."""
    return _within(limit >= 0, -limit, limit)


@lemma
def _prove_within() -> Thm:
    hyps = suppose(limit >= 0)
    ratio = LOG(teacher / student)
    laws = [unfold(REWARD, limit, teacher, student), unfold(CLIP, limit, ratio)]
    value = REWARD(limit, teacher, student)
    goal = conj(-limit <= value, value <= limit)
    return close(EVERY, hyps, have(goal, *hyps, *laws))


def _zero_iff(positive: Term) -> Term:
    same = eq(eq(REWARD(limit, teacher, student), 0), eq(teacher, student))
    return forall(EVERY, implies(positive, same))


def reward_zero_iff_equal() -> Term:
    """The reward is zero exactly where teacher and student agree."""
    return _zero_iff(conj(limit > 0, teacher > 0, student > 0))


@lemma
def _prove_zero_iff() -> Thm:
    hyps = suppose(conj(limit > 0, teacher > 0, student > 0))
    ratio = teacher / student
    whole = quotient_of(teacher, student, *hyps)
    positive = have(ratio > 0, whole, *hyps)
    log_zero = kernel.mp(log_one()(ratio), positive)
    laws = [unfold(REWARD, limit, teacher, student), unfold(CLIP, limit, LOG(ratio))]
    zero = eq(REWARD(limit, teacher, student), 0)
    same = eq(teacher, student)
    (is_zero,) = suppose(zero)
    log_is_zero = exact(eq(LOG(ratio), 0), is_zero, *laws, *hyps)
    ratio_is_one = kernel.eq_mp(log_zero, log_is_zero)
    one = kernel.congr(ratio * student, ratio_is_one, kernel.refl(student))
    there = kernel.discharge(zero, exact(same, whole, one))
    (is_same,) = suppose(same)
    one = have(eq(ratio, 1), is_same, *hyps)
    log_is_zero = kernel.eq_mp(kernel.sym(log_zero), one)
    back = kernel.discharge(same, exact(zero, log_is_zero, *laws, *hyps))
    return close(EVERY, hyps, kernel.iff_intro(there, back))


def same_policy_no_reward() -> Term:
    """Against itself a policy gets no reward."""
    p = var("p", REAL)
    free = conj(limit >= 0, p > 0)
    return forall([limit, p], implies(free, eq(REWARD(limit, p, p), 0)))


@lemma
def _prove_same_policy() -> Thm:
    p = var("p", REAL)
    hyps = suppose(conj(limit >= 0, p > 0))
    one = have(eq(p / p, 1), *hyps)
    positive = exact(p / p > 0, one)
    zero = kernel.eq_mp(kernel.sym(use(log_one()(p / p), positive)), one)
    laws = [unfold(REWARD, limit, p, p), unfold(CLIP, limit, LOG(p / p))]
    return close(
        [limit, p], hyps, exact(eq(REWARD(limit, p, p), 0), zero, *laws, *hyps)
    )


def clip_keeps_what_is_within() -> Term:
    """Values within the limits are not changed by clipping."""
    return forall([limit, x], implies(absolute(x) <= limit, eq(CLIP(limit, x), x)))


@lemma
def _prove_clip() -> Thm:
    hyps = suppose(absolute(x) <= limit)
    th = exact(eq(CLIP(limit, x), x), unfold(CLIP, limit, x), *hyps)
    return close([limit, x], hyps, th)


def _mutants() -> Mapping[str, Term]:
    return {
        "a limit of any sign": _within(eq(limit, limit), -limit, limit),
        "half the limit": _within(limit >= 0, -limit, limit / 2),
        "never negative": _within(limit >= 0, real(0), limit),
    }


def _zero_mutants() -> Mapping[str, Term]:
    return {
        "a limit of zero": _zero_iff(conj(limit >= 0, teacher > 0, student > 0)),
    }


def _clip_mutants() -> Mapping[str, Term]:
    """Wrong variants of clip_keeps_what_is_within."""
    same = eq(CLIP(limit, x), x)
    return {
        "one past the limit": forall(
            [limit, x], implies(absolute(x) <= limit + 1, same)
        ),
        "a bound above alone": forall([limit, x], implies(x <= limit, same)),
    }


def _same_mutants() -> Mapping[str, Term]:
    """Wrong variants of same_policy_no_reward."""
    own, none = REWARD(limit, teacher, teacher), eq(REWARD(*EVERY), 0)
    apart = conj(limit >= 0, teacher > 0, student > 0)
    return {
        "a limit below 0": forall([limit, teacher], implies(teacher > 0, eq(own, 0))),
        "another policy": forall(EVERY, implies(apart, none)),
    }


THEOREMS: Theorems = {
    "reward_within_limits": Theorem(
        statement=reward_within_limits,
        proof=_prove_within,
        scope="all limits ≥ 0, all reals",
        mutants=_mutants,
    ),
    "reward_zero_iff_equal": Theorem(
        statement=reward_zero_iff_equal,
        proof=_prove_zero_iff,
        scope="all positive limits and probabilities",
        mutants=_zero_mutants,
    ),
    "clip_keeps_what_is_within": Theorem(
        statement=clip_keeps_what_is_within,
        proof=_prove_clip,
        scope="all real limits and values",
        mutants=_clip_mutants,
    ),
    "same_policy_no_reward": Theorem(
        statement=same_policy_no_reward,
        proof=_prove_same_policy,
        scope="all limits ≥ 0, all positive probabilities",
        mutants=_same_mutants,
    ),
}
