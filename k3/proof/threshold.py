"""Quantile balancing: a threshold that minimizes the objective can be constructed."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    exact,
    lemma,
    restate,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import REAL, list_of
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    implies,
    ite,
    maximum,
    minimum,
    real,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.balance import (
    OBJECTIVE,
    above,
    at_least,
    load,
    margins,
    other,
    prove_minimizer,
    theta,
)
from k3.proof.lists import length, total
from k3.proof.theorem import Theorem, Theorems

LIST = list_of(REAL)
some, low, w = var("some", LIST), var("low", REAL), var("w", REAL)
ADD, SIZE = total(REAL), length(REAL)
ABOVE = define("above", [theta, margins], above(theta, margins))
PEAK = recursive(  # the largest margin
    "peak", [margins], REAL, lambda: real(0), lambda h, t, rec: maximum(h, rec())
)
# the least of some margins with at most `load` of all margins above it
LEAST = recursive(
    "least",
    [load, margins, some],
    REAL,
    lambda load, margins: PEAK(margins),
    lambda h, t, rec, load, margins: ite(
        ABOVE(h, margins) <= load, minimum(h, rec(load, margins)), rec(load, margins)
    ),
)
THRESHOLD = define("threshold", [load, margins], LEAST(load, margins, margins))
# the largest of some margins below θ, or `low`; and a number below θ and all margins
FLOOR = recursive(
    "floor",
    [theta, low, some],
    REAL,
    lambda theta, low: low,
    lambda h, t, rec, theta, low: ite(
        h < theta, maximum(h, rec(theta, low)), rec(theta, low)
    ),
)
DEEP = recursive(
    "deep",
    [theta, some],
    REAL,
    lambda theta: theta - 1,
    lambda h, t, rec, theta: minimum(h - 1, rec(theta)),
)
COUNT = to_real(SIZE(margins))
FITS = conj(load >= 0, load <= COUNT)


def _minimal(threshold: Term) -> Term:
    least = OBJECTIVE(load, threshold, margins) <= OBJECTIVE(load, other, margins)
    return forall([load, margins, other], implies(FITS, least))


def threshold_minimizes() -> Term:
    """The least margin with at most `load` margins above it minimizes the objective,
    for every load between 0 and the number of tokens: it can be computed by counting.
    """
    return _minimal(THRESHOLD(load, margins))


@lemma
def _few_above() -> Thm:
    """At most `load` margins are above the least of any margins."""
    (natural,) = suppose(load >= 0)
    none = implies(w >= PEAK(margins), eq(above(w, margins), 0))
    top = by_induction(margins, forall([w], none), defs=[ADD, PEAK])
    at = use(top(margins)(PEAK(margins)))
    peak = exact(
        ABOVE(PEAK(margins), margins) <= load,
        at,
        natural,
        unfold(ABOVE, PEAK(margins), margins),
    )
    goal = ABOVE(LEAST(load, margins, some), margins) <= load
    th = by_induction(some, goal, by=[peak], defs=[LEAST])
    return close([load, margins], [natural], th)


@lemma
def _next_below() -> Thm:
    """Just below θ as many margins lie above as lie at θ or above."""
    same = eq(above(w, some), at_least(theta, some))
    inside = conj(FLOOR(theta, low, some) <= w, w < theta)
    goal = forall([theta, low, w], implies(inside, same))
    return by_induction(some, goal, defs=[ADD, FLOOR])


@lemma
def _floor_below() -> Thm:
    goal = implies(low < theta, FLOOR(theta, low, some) < theta)
    return by_induction(some, forall([theta, low], goal), defs=[FLOOR])


@lemma
def _floor_has_many() -> Thm:
    """A margin below the least has more than `load` margins above it."""
    v = FLOOR(theta, low, some)
    many = eq(v, low) | (ABOVE(v, margins) > load)
    goal = implies(v < LEAST(load, margins, some), many)
    every = [load, margins, theta, low]
    return by_induction(some, forall(every, goal), defs=[FLOOR, LEAST])


@lemma
def _deep_is_below_all() -> Thm:
    every = eq(above(w, some), to_real(SIZE(some)))
    goal = implies(w <= DEEP(theta, some), every)
    return by_induction(some, forall([theta, w], goal), defs=[ADD, DEEP, SIZE])


@lemma
def _deep_is_below() -> Thm:
    goal = DEEP(theta, some) <= theta - 1
    return by_induction(some, forall([theta], goal), defs=[DEEP])


@lemma
def _prove_threshold() -> Thm:
    fits = suppose(FITS)
    t = THRESHOLD(load, margins)
    law = unfold(THRESHOLD, load, margins)
    bottom = DEEP(t, margins)
    v = FLOOR(t, bottom, margins)
    few = use(_few_above()(load, margins), *fits)(margins)
    same = kernel.congr(ABOVE(t, margins), law, kernel.refl(margins))
    first = exact(above(t, margins) <= load, few, same, unfold(ABOVE, t, margins))
    under = _deep_is_below()(margins)(t)
    below = use(_floor_below()(margins)(t, bottom), exact(bottom < t, under))
    counted = use(_next_below()(margins)(t, bottom, v), below, exact(v <= v))
    less = exact(v < LEAST(load, margins, margins), below, law)
    either = kernel.mp(_floor_has_many()(margins)(load, margins, t, bottom), less)
    all_above = use(_deep_is_below_all()(margins)(t, bottom))
    named = [unfold(ABOVE, v, margins), unfold(ABOVE, bottom, margins)]
    (lowest,) = suppose(eq(v, bottom))
    moved = kernel.congr(ABOVE(v, margins), lowest, kernel.refl(margins))
    goal = at_least(t, margins) >= load
    yes = exact(goal, moved, *named, counted, all_above, *fits)
    (higher,) = suppose(~eq(v, bottom))
    many = kernel.ground(ABOVE(v, margins) > load, [either, higher])
    no = exact(goal, many, counted, *named)
    counts = kernel.conj_intro(first, kernel.by_cases(eq(v, bottom), yes, no))
    least = kernel.eq_mp(kernel.sym(prove_minimizer()(load, t, margins)), counts)
    th = close([load, margins, other], fits, least(other))
    return restate(threshold_minimizes(), th)


def _mutants() -> Mapping[str, Term]:
    return {
        "the largest margin": _minimal(PEAK(margins)),
        "zero": _minimal(real(0)),
    }


THEOREMS: Theorems = {
    "threshold_minimizes": Theorem(
        statement=threshold_minimizes,
        proof=_prove_threshold,
        scope="all numbers of tokens, all real margins with ties, all loads in range",
        mutants=_mutants,
    ),
}
