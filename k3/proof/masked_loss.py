"""The masked next-token loss: a mean over kept positions, and its derivative."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    lemma,
    suppose,
    unfold,
)
from k3.logic.kernel import Thm
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    implies,
    ite,
    lam,
    real,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import length
from k3.proof.masked_change import (
    change_mutants,
    derivative_of_the_mean,
    once,
    prove_derivative,
)
from k3.proof.masked_mean import (
    ADD,
    ALL_OF,
    COUNT,
    JOIN,
    KEPT_SUM,
    LAWS,
    MEAN,
    POSITION,
    f,
    g,
    kept,
    p,
    xs,
    ys,
)
from k3.proof.theorem import Theorem, Theorems


def masked_contribute_nothing() -> Term:
    """Losses that agree on the kept positions have the same mean, whatever they are
    elsewhere; and a masked position in the middle changes nothing.
    """
    agree = ALL_OF(lam([p], implies(kept(p), eq(f(p), g(p)))), xs)
    same = eq(MEAN(kept, f, xs), MEAN(kept, g, xs))
    more = MEAN(kept, f, JOIN(xs, cons(p, ys)))
    less = eq(more, MEAN(kept, f, JOIN(xs, ys)))
    goal = conj(implies(agree, same), implies(~kept(p), less))
    return forall([kept, f, g, xs, ys, p], goal)


@lemma
def _same_sums() -> Thm:
    """Losses that agree on the kept positions have the same kept sum."""
    agree = ALL_OF(lam([p], implies(kept(p), eq(f(p), g(p)))), xs)
    sums = [ADD(lam([p], ite(kept(p), v(p), real(0))), xs) for v in (f, g)]
    goal = implies(agree, eq(*sums))
    return by_induction(xs, goal, defs=LAWS)


@lemma
def _inserted() -> Thm:
    """A masked position changes neither the sum nor the count."""
    out = []
    hyps = suppose(~kept(p))
    x = var("x", POSITION)
    for value in (f(x), real(1)):
        body = lam([x], ite(kept(x), value, real(0)))
        goal = eq(ADD(body, JOIN(xs, cons(p, ys))), ADD(body, JOIN(xs, ys)))
        out.append(by_induction(xs, goal, by=hyps, defs=LAWS)(xs))
    return close([], hyps, kernel.conj_intro(*out))


@lemma
def _prove_masked() -> Thm:
    agree = suppose(ALL_OF(lam([p], implies(kept(p), eq(f(p), g(p)))), xs))
    sums = kernel.mp(_same_sums()(xs), agree[0])
    laws = [unfold(MEAN, kept, v, xs) for v in (f, g)]
    laws += [unfold(KEPT_SUM, kept, v, xs) for v in (f, g)]
    same = eq(MEAN(kept, f, xs), MEAN(kept, g, xs))
    first = kernel.discharge(agree[0].concl, kernel.ground(same, [sums, *laws]))
    hyps = suppose(~kept(p))
    moved = kernel.mp(_inserted(), hyps[0])
    lists = JOIN(xs, cons(p, ys)), JOIN(xs, ys)
    laws = [unfold(s, kept, f, x) for x in lists for s in (MEAN, KEPT_SUM)]
    laws += [unfold(COUNT, kept, x) for x in lists]
    less = eq(*(MEAN(kept, f, x) for x in lists))
    second = kernel.discharge(hyps[0].concl, kernel.ground(less, [moved, *laws]))
    return kernel.generalize([kept, f, g, xs, ys, p], kernel.conj_intro(first, second))


def all_masked_is_zero() -> Term:
    """With every position masked the loss is defined, and 0."""
    none = ALL_OF(lam([p], ~kept(p)), xs)
    return forall([kept, f, xs], implies(none, eq(MEAN(kept, f, xs), 0)))


@lemma
def _prove_all_masked() -> Thm:
    none = ALL_OF(lam([p], ~kept(p)), xs)
    count = ADD(lam([p], ite(kept(p), real(1), real(0))), xs)
    th = by_induction(xs, implies(none, eq(count, 0)), defs=LAWS)
    hyps = suppose(none)
    at = kernel.mp(th(xs), hyps[0])
    laws = [unfold(MEAN, kept, f, xs), unfold(COUNT, kept, xs)]
    goal = kernel.ground(eq(MEAN(kept, f, xs), 0), [at, *laws])
    return close([kept, f, xs], hyps, goal)


def _masked_mutants() -> Mapping[str, Term]:
    """Wrong variants of masked_contribute_nothing."""
    more = MEAN(kept, f, JOIN(xs, cons(p, ys)))
    less = eq(more, MEAN(kept, f, JOIN(xs, ys)))
    everything = length(POSITION)(xs)
    other = KEPT_SUM(kept, f, xs) / to_real(everything)
    some = everything >= 1
    return {
        "a kept position": forall([kept, f, xs, ys, p], less),
        "the mean over all positions": forall(
            [kept, f, xs], implies(some, eq(MEAN(kept, f, xs), other))
        ),
    }


def _none_mutants() -> Mapping[str, Term]:
    """Wrong variants of all_masked_is_zero."""
    none, mean = ALL_OF(lam([p], ~kept(p)), xs), MEAN(kept, f, xs)
    return {
        "any mask": forall([kept, f, xs], eq(mean, 0)),
        "one": forall([kept, f, xs], implies(none, eq(mean, 1))),
    }


ANY = "all positions, masks and losses, all lengths"
THEOREMS: Theorems = {
    "masked_contribute_nothing": Theorem(
        statement=masked_contribute_nothing,
        proof=_prove_masked,
        scope=ANY,
        mutants=_masked_mutants,
    ),
    "all_masked_is_zero": Theorem(
        statement=all_masked_is_zero,
        proof=_prove_all_masked,
        scope=ANY,
        mutants=_none_mutants,
    ),
    "derivative_of_the_mean": Theorem(
        statement=derivative_of_the_mean,
        proof=prove_derivative,
        scope=f"{ANY}, all slacks ≥ 0",
        mutants=change_mutants,
        hints={
            "half the slack": once(),
            "rows not divided by |S|": {**once(), "g": lambda p: Fraction(2)},
        },
    ),
}
