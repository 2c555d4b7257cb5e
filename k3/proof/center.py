"""Centered router biases: they sum to zero and keep every comparison."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    close,
    exact,
    lemma,
    list_induction,
    restate,
    rewritten,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of
from k3.logic.syntax import cons, eq, forall, implies, lam, nil, to_real, var
from k3.logic.terms import Term
from k3.proof.lists import length, total
from k3.proof.reals import quotient_of
from k3.proof.theorem import Theorem, Theorems

biases, bias, c = var("biases", list_of(REAL)), var("bias", REAL), var("c", REAL)
a, b = var("a", REAL), var("b", REAL)


def _sum(value: Term, biases: Term) -> Term:
    return total(REAL)(lam([bias], value), biases)


def _count(biases: Term) -> Term:
    return to_real(length(REAL)(biases))


MEAN = _sum(bias, biases) / _count(biases)


def centered_biases_sum_to_zero() -> Term:
    """Biases minus their mean sum to zero, if there is at least one."""
    some = length(REAL)(biases) > 0
    return forall([biases], implies(some, eq(_sum(bias - MEAN, biases), 0)))


@lemma
def _shifted() -> Thm:
    """Σ (bias − c) = Σ bias − n·c."""

    def at(biases: Term) -> Term:
        right = _sum(bias, biases) - _count(biases) * c
        return eq(_sum(bias - c, biases), right)

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        laws = [at_next(total(REAL), h, tail, lam([bias], v)) for v in (bias - c, bias)]
        grown = at_next(length(REAL), h, tail)
        size = kernel.ground(eq(_count(cons(h, tail)), _count(tail) + 1), [grown])
        scaled = kernel.congr(_count(cons(h, tail)) * c, size, kernel.refl(c))
        return rewritten(at(cons(h, tail)), laws, smaller, scaled)

    base = auto(at(nil(REAL)), defs=[total(REAL), length(REAL)])
    return kernel.generalize([c], list_induction(biases, at(biases), base, step))


@lemma
def _prove_center() -> Thm:
    some = suppose(length(REAL)(biases) > 0)
    positive = kernel.ground(_count(biases) > 0, some)
    whole = quotient_of(_sum(bias, biases), _count(biases), positive)
    at = _shifted()(MEAN)(biases)
    th = exact(eq(_sum(bias - MEAN, biases), 0), at, whole)
    return restate(centered_biases_sum_to_zero(), close([biases], some, th))


def centering_keeps_order() -> Term:
    """Subtracting the mean, or any number, from both keeps every comparison."""
    return forall([a, b, c], eq(a - c <= b - c, a <= b))


@lemma
def _prove_order() -> Thm:
    one, two = suppose(a - c <= b - c)[0], suppose(a <= b)[0]
    there = kernel.discharge(one.concl, exact(a <= b, one))
    back = kernel.discharge(two.concl, exact(a - c <= b - c, two))
    return kernel.generalize([a, b, c], kernel.iff_intro(there, back))


def _order_mutants() -> Mapping[str, Term]:
    """Wrong variants of centering_keeps_order."""
    return {
        "one side alone": forall([a, b, c], eq(a - c <= b, a <= b)),
        "subtracted the other way": forall([a, b, c], eq(c - a <= c - b, a <= b)),
    }


def _sum_mutants() -> Mapping[str, Term]:
    """Wrong variants of centered_biases_sum_to_zero."""
    some = length(REAL)(biases) > 0
    twice = _sum(bias - MEAN - MEAN, biases)
    return {
        "without the mean": forall([biases], eq(_sum(bias, biases), 0)),
        "the mean twice": forall([biases], implies(some, eq(twice, 0))),
        "the sum instead of the mean": forall(
            [biases], implies(some, eq(_sum(bias - _sum(bias, biases), biases), 0))
        ),
    }


THEOREMS: Theorems = {
    "centered_biases_sum_to_zero": Theorem(
        statement=centered_biases_sum_to_zero,
        proof=_prove_center,
        scope="all numbers of experts, all real biases",
        mutants=_sum_mutants,
    ),
    "centering_keeps_order": Theorem(
        statement=centering_keeps_order,
        proof=_prove_order,
        scope="all reals",
        mutants=_order_mutants,
    ),
}
