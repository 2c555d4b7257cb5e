"""Quantile balancing: exactly which biases minimize the objective, and histograms."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    auto,
    by_induction,
    exact,
    have,
    lemma,
    restate,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import REAL, list_of, pair_of
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    ite,
    lam,
    maximum,
    minimum,
    nil,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import total
from k3.proof.reals import product_nonneg, product_pos
from k3.proof.theorem import Theorem, Theorems

margins, margin = var("margins", list_of(REAL)), var("margin", REAL)
load, theta, other = (var(v, REAL) for v in ("load", "theta", "other"))
step = var("step", REAL)
ADD = total(REAL)


def one_if(condition: Term) -> Term:
    """1 where the condition holds, else 0."""
    return ite(condition, real(1), real(0))


def above(theta: Term, margins: Term) -> Term:
    """How many margins are > θ."""
    return ADD(lam([margin], one_if(margin > theta)), margins)


def at_least(theta: Term, margins: Term) -> Term:
    """How many margins are ≥ θ."""
    return ADD(lam([margin], one_if(margin >= theta)), margins)


def excess(theta: Term, margins: Term) -> Term:
    """Σ max(margin − θ, 0)."""
    return ADD(lam([margin], maximum(margin - theta, 0)), margins)


OBJECTIVE = define(
    "objective", [load, theta, margins], load * theta + excess(theta, margins)
)


def _minimizes(load: Term, theta: Term, margins: Term) -> Term:
    least = OBJECTIVE(load, theta, margins) <= OBJECTIVE(load, other, margins)
    return forall([other], least)


def _counts(load: Term, theta: Term, margins: Term) -> Term:
    return conj(above(theta, margins) <= load, load <= at_least(theta, margins))


def minimizer_iff_counts() -> Term:
    """θ minimizes load·θ + Σ max(margin − θ, 0) exactly when the number of margins
    above θ is ≤ load and the number of margins ≥ θ is ≥ load. Ties are allowed, and
    the target load is any real number.
    """
    left = _minimizes(load, theta, margins)
    return forall([load, theta, margins], eq(left, _counts(load, theta, margins)))


def _after(direction: int) -> Term:
    """Excess at another threshold, against the line through θ with the count."""
    count = above if direction > 0 else at_least
    line = excess(theta, margins) - (other - theta) * count(theta, margins)
    return excess(other, margins) >= line


@lemma
def _right() -> Thm:
    phi = forall([theta, other], implies(other >= theta, _after(1)))
    return by_induction(margins, phi, defs=[ADD])


@lemma
def _left() -> Thm:
    phi = forall([theta, other], implies(other <= theta, _after(-1)))
    return by_induction(margins, phi, defs=[ADD])


# the distance from θ to the next margin above it, and below it; 1 if there is none
GAP_ABOVE = recursive(
    "gap_above",
    [theta, margins],
    REAL,
    lambda theta: real(1),
    lambda h, t, rec, theta: ite(h > theta, minimum(h - theta, rec(theta)), rec(theta)),
)
GAP_BELOW = recursive(
    "gap_below",
    [theta, margins],
    REAL,
    lambda theta: real(1),
    lambda h, t, rec, theta: ite(h < theta, minimum(theta - h, rec(theta)), rec(theta)),
)


@lemma
def _gaps() -> Thm:
    positive = conj(GAP_ABOVE(theta, margins) > 0, GAP_BELOW(theta, margins) > 0)
    return by_induction(margins, forall([theta], positive), defs=[GAP_ABOVE, GAP_BELOW])


@lemma
def _line_above() -> Thm:
    inside = conj(step >= 0, step <= GAP_ABOVE(theta, margins))
    line = excess(theta, margins) - step * above(theta, margins)
    goal = implies(inside, eq(excess(theta + step, margins), line))
    return by_induction(margins, forall([theta, step], goal), defs=[ADD, GAP_ABOVE])


@lemma
def _line_below() -> Thm:
    inside = conj(step >= 0, step <= GAP_BELOW(theta, margins))
    line = excess(theta, margins) + step * at_least(theta, margins)
    goal = implies(inside, eq(excess(theta - step, margins), line))
    return by_induction(margins, forall([theta, step], goal), defs=[ADD, GAP_BELOW])


def _objective(theta: Term) -> Thm:
    return unfold(OBJECTIVE, load, theta, margins)


@lemma
def _minimum_has_counts() -> Thm:
    (least,) = suppose(_minimizes(load, theta, margins))
    gaps = _gaps()(margins)(theta)
    up, down = GAP_ABOVE(theta, margins), GAP_BELOW(theta, margins)
    right = use(_line_above()(margins)(theta, up), gaps)
    left = use(_line_below()(margins)(theta, down), gaps)
    few = [least(theta + up), right, _objective(theta), _objective(theta + up)]
    many = [least(theta - down), left, _objective(theta), _objective(theta - down)]
    counts = [
        _divided(load - above(theta, margins), up, few, gaps),
        _divided(at_least(theta, margins) - load, down, many, gaps),
    ]
    th = have(_counts(load, theta, margins), *counts)
    return kernel.discharge(least.concl, th)


def _divided(value: Term, gap: Term, facts: list[Thm], gaps: Thm) -> Thm:
    """value ≥ 0, from gap·value ≥ 0 and gap > 0."""
    product = exact(gap * value >= 0, *facts)
    negative = suppose(value < 0)
    below = product_pos(gap, -value, gaps, *negative)
    no = exact(value >= 0, product, below)
    return kernel.by_cases(value < 0, no, exact(value >= 0, *suppose(~(value < 0))))


@lemma
def _counts_give_minimum() -> Thm:
    (counts,) = suppose(_counts(load, theta, margins))
    laws = [_objective(theta), _objective(other)]
    goal = OBJECTIVE(load, theta, margins) <= OBJECTIVE(load, other, margins)
    right, left = suppose(other >= theta)[0], suppose(~(other >= theta))[0]
    few = product_nonneg(other - theta, load - above(theta, margins), counts, right)
    many = product_nonneg(theta - other, at_least(theta, margins) - load, counts, left)
    line = use(_right()(margins)(theta, other), right)
    up = exact(goal, few, line, *laws)
    line = use(_left()(margins)(theta, other), left)
    down = exact(goal, many, line, *laws)
    th = kernel.by_cases(other >= theta, up, down)
    return kernel.discharge(counts.concl, kernel.generalize([other], th))


@lemma
def prove_minimizer() -> Thm:
    """The complete condition."""
    th = kernel.iff_intro(_minimum_has_counts(), _counts_give_minimum())
    return kernel.generalize([load, theta, margins], th)


TWO = cons(real(1), cons(real(0), nil(REAL)))


def exact_count_is_not_necessary() -> Term:
    """Margins (1, 0), load 1: θ = 1 minimizes the objective, though no margin is
    above it. So "minimized exactly when load margins lie above" (Appendix C, Eq. 24)
    does not hold with ties.
    """
    return conj(_minimizes(real(1), real(1), TWO), eq(above(real(1), TWO), 0))


@lemma
def _prove_not_necessary() -> Thm:
    none = auto(eq(above(real(1), TWO), 0), defs=[ADD])
    counts = auto(_counts(real(1), real(1), TWO), defs=[ADD])
    least = kernel.eq_mp(kernel.sym(prove_minimizer()(1, 1, TWO)), counts)
    return kernel.conj_intro(least, none)


SCORED = pair_of(REAL, REAL)
tokens, token = var("tokens", list_of(SCORED)), var("token", SCORED)


def _hits(routed: Term) -> Term:
    add = total(SCORED)
    wanted = add(lam([token], one_if(fst(token) - snd(token) > theta)), tokens)
    found = add(lam([token], one_if(routed)), tokens)
    return eq(found, wanted)


BIASED = fst(token) + -theta > snd(token)


def bias_hits_count() -> Term:
    """With bias −θ as many tokens are routed as have score − cutoff > θ."""
    return forall([theta, tokens], _hits(BIASED))


@lemma
def _prove_bias() -> Thm:
    same = forall([theta], _hits(BIASED))
    return restate(bias_hits_count(), by_induction(tokens, same, defs=[total(SCORED)]))


def _minimizer_mutants() -> Mapping[str, Term]:
    every = [load, theta, other, margins]
    least = OBJECTIVE(load, theta, margins) <= OBJECTIVE(load, other, margins)
    few, many = above(theta, margins) <= load, load <= at_least(theta, margins)
    exactly = eq(above(theta, margins), load)
    return {
        "only the count above": forall(every, implies(few, least)),
        "only the count at least": forall(every, implies(many, least)),
        "exactly load + 1 margins above": forall(
            every, implies(eq(above(theta, margins), load + 1), least)
        ),
        "a minimizer has the exact count": forall(
            every, implies(conj(few, many), exactly)
        ),
    }


def _hits_mutants() -> Mapping[str, Term]:
    added = fst(token) + theta > snd(token)
    ties = fst(token) + -theta >= snd(token)
    return {
        "the threshold as the bias": forall([theta, tokens], _hits(added)),
        "the cutoff itself counts": forall([theta, tokens], _hits(ties)),
    }


THEOREMS: Theorems = {
    "minimizer_iff_counts": Theorem(
        statement=minimizer_iff_counts,
        proof=prove_minimizer,
        scope="all numbers of tokens, all real margins with ties, all real loads",
        mutants=_minimizer_mutants,
    ),
    "exact_count_is_not_necessary": Theorem(
        statement=exact_count_is_not_necessary,
        proof=_prove_not_necessary,
        scope="one instance: a counterexample to Appendix C, Eq. 24",
        mutants=lambda: {
            "one margin above": eq(above(real(1), TWO), 1),
            "above every margin": _minimizes(real(1), real(2), TWO),
        },
    ),
    "bias_hits_count": Theorem(
        statement=bias_hits_count,
        proof=_prove_bias,
        scope="all numbers of tokens, all real scores and cutoffs",
        mutants=_hits_mutants,
    ),
}
