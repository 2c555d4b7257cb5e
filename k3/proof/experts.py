"""Expert parallelism and the expert's output: counting and bounds."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    exact,
    lemma,
    list_induction,
    restate,
    rewritten,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of, pair_of
from k3.logic.syntax import (
    absolute,
    cons,
    forall,
    fst,
    implies,
    lam,
    nil,
    real,
    snd,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import length, total
from k3.proof.situ import SITU, absolute_product, prove_released_bound
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems

loads, load, cap = var("loads", list_of(REAL)), var("load", REAL), var("cap", REAL)
ADD, SIZE = total(REAL), length(REAL)


def _all_within(cap: Term) -> Term:
    return every(REAL)(lam([load], load <= cap), loads)


def _whole() -> Term:
    return ADD(lam([load], load), loads)


def capacity_bounds_total() -> Term:
    """If no rank holds more than its capacity, R ranks hold at most R capacities."""
    goal = _whole() <= cap * to_real(SIZE(loads))
    return forall([loads, cap], implies(_all_within(cap), goal))


@lemma
def prove_capacity() -> Thm:
    """Total against capacity."""
    goal = _whole() <= cap * to_real(SIZE(loads))
    defs = [ADD, SIZE, every(REAL)]
    phi = forall([cap], implies(_all_within(cap), goal))
    return restate(capacity_bounds_total(), by_induction(loads, phi, defs=defs))


def some_rank_exceeds() -> Term:
    """Pigeonhole: more tokens than R capacities cannot all be within capacity."""
    over = _whole() > cap * to_real(SIZE(loads))
    return forall([loads, cap], implies(over, ~_all_within(cap)))


@lemma
def _prove_exceeds() -> Thm:
    over = suppose(_whole() > cap * to_real(SIZE(loads)))
    th = kernel.ground(~_all_within(cap), [prove_capacity()(loads, cap), *over])
    return close([loads, cap], over, th)


UNIT = pair_of(pair_of(REAL, REAL), REAL)  # ((gate, up), down weight)
units, unit = var("units", list_of(UNIT)), var("unit", UNIT)


def _value(unit: Term) -> Term:
    hidden = SITU(real(4), real(25), fst(fst(unit)), snd(fst(unit)))
    return hidden * snd(unit)


def _output(units: Term) -> Term:
    return total(UNIT)(lam([unit], _value(unit)), units)


def _weights(units: Term) -> Term:
    return total(UNIT)(lam([unit], absolute(snd(unit))), units)


def _bound(most: int) -> Term:
    return forall([units], absolute(_output(units)) <= _weights(units) * most)


def output_bound() -> Term:
    """Each output of an expert is at most 100·Σ |down weight| in absolute value."""
    return _bound(100)


@lemma
def _prove_output() -> Thm:
    def at(units: Term) -> Term:
        return absolute(_output(units)) <= _weights(units) * 100

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        hidden = SITU(real(4), real(25), fst(fst(h)), snd(fst(h)))
        inside = prove_released_bound()(fst(fst(h)), snd(fst(h)))
        size = absolute(snd(h))
        own = exact(absolute(snd(h)) <= size)
        first = absolute_product(hidden, snd(h), real(100), size, inside, own)
        bodies = (_value(unit), absolute(snd(unit)))
        laws = [at_next(total(UNIT), h, tail, lam([unit], b)) for b in bodies]
        return rewritten(at(cons(h, tail)), laws, smaller, first)

    base = auto(at(nil(UNIT)), defs=[total(UNIT)])
    return restate(output_bound(), list_induction(units, at(units), base, step))


def _capacity_mutants() -> Mapping[str, Term]:
    short = _whole() <= cap * (to_real(SIZE(loads)) - 1)
    return {
        "one rank fewer": forall([loads, cap], implies(_all_within(cap), short)),
        "without the limit": forall(
            [loads, cap], _whole() <= cap * to_real(SIZE(loads))
        ),
    }


BIG = (((Fraction(30), Fraction(90)), Fraction(1)),)


def _exceeds_mutants() -> Mapping[str, Term]:
    """Wrong variants of some_rank_exceeds."""
    most, within = cap * to_real(SIZE(loads)), _all_within(cap)
    above = every(REAL)(lam([load], load > cap), loads)
    return {
        "exactly full": forall([loads, cap], implies(_whole() >= most, ~within)),
        "every rank exceeds": forall([loads, cap], implies(_whole() > most, above)),
    }


THEOREMS: Theorems = {
    "capacity_bounds_total": Theorem(
        statement=capacity_bounds_total,
        proof=prove_capacity,
        scope="all numbers of ranks, all loads",
        mutants=_capacity_mutants,
    ),
    "some_rank_exceeds": Theorem(
        statement=some_rank_exceeds,
        proof=_prove_exceeds,
        scope="all numbers of ranks, all loads",
        mutants=_exceeds_mutants,
    ),
    "output_bound": Theorem(
        statement=output_bound,
        proof=_prove_output,
        scope="all hidden widths, all weights and inputs",
        mutants=lambda: {"a bound of 99": _bound(99)},
        hints={"a bound of 99": {"units": BIG}},
    ),
}
