"""SiTU: the soft-capped, sigmoid-gated unit of the experts, and its bounds."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import close, exact, have, lemma, suppose, unfold
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL
from k3.logic.syntax import absolute, conj, forall, implies, real, var
from k3.logic.terms import Term
from k3.proof.reals import (
    SIGMOID,
    TANH,
    product_nonneg,
    sigmoid_between,
    tanh_between,
)
from k3.proof.theorem import Theorem, Theorems

c, x = var("c", REAL), var("x", REAL)
gate_cap, up_cap = var("gate_cap", REAL), var("up_cap", REAL)
g, u = var("g", REAL), var("u", REAL)

SOFT_CAP = define("soft_cap", [c, x], c * TANH(x / c))
SITU = define(
    "situ",
    [gate_cap, up_cap, g, u],
    SOFT_CAP(gate_cap, g) * SIGMOID(g) * SOFT_CAP(up_cap, u),
)


def soft_cap_bound() -> Term:
    """A soft cap c ≥ 0 keeps every value within [−c, c]."""
    return forall([c, x], implies(c >= 0, absolute(SOFT_CAP(c, x)) <= c))


@lemma
def _prove_soft_cap_bound() -> Thm:
    hyps = suppose(c >= 0)
    t = TANH(x / c)
    between = tanh_between()(x / c)
    low = product_nonneg(c, t + 1, *hyps, between)
    high = product_nonneg(c, real(1) - t, *hyps, between)
    th = exact(absolute(SOFT_CAP(c, x)) <= c, unfold(SOFT_CAP, c, x), low, high)
    return close([c, x], hyps, th)


def _bound(limit: Term) -> Term:
    value = absolute(SITU(gate_cap, up_cap, g, u))
    caps = conj(gate_cap >= 0, up_cap >= 0)
    return forall([gate_cap, up_cap, g, u], implies(caps, value <= limit))


def output_bound() -> Term:
    """|SiTU| is at most the product of the two caps, for all inputs."""
    return _bound(gate_cap * up_cap)


@lemma
def _prove_output_bound() -> Thm:
    hyps = suppose(conj(gate_cap >= 0, up_cap >= 0))
    a, s, b = SOFT_CAP(gate_cap, g), SIGMOID(g), SOFT_CAP(up_cap, u)
    bound = _prove_soft_cap_bound()
    in_a = kernel.mp(bound(gate_cap, g), have(gate_cap >= 0, *hyps))
    in_b = kernel.mp(bound(up_cap, u), have(up_cap >= 0, *hyps))
    unit = sigmoid_between()(g)
    gated = absolute_product(a, s, gate_cap, real(1), in_a, unit)
    whole = absolute_product(a * s, b, gate_cap * 1, up_cap, gated, in_b)
    law = unfold(SITU, gate_cap, up_cap, g, u)
    goal = absolute(SITU(gate_cap, up_cap, g, u)) <= gate_cap * up_cap
    return close([gate_cap, up_cap, g, u], hyps, exact(goal, whole, law))


def absolute_product(a: Term, b: Term, most_a: Term, most_b: Term, *by: Thm) -> Thm:
    """|a| ≤ A and |b| ≤ B give |ab| ≤ AB; the bounds follow from these facts."""
    sides = [
        product_nonneg(most_a + i * a, most_b + j * b, *by)
        for i in (1, -1)
        for j in (1, -1)
    ]
    return exact(absolute(a * b) <= most_a * most_b, *sides)


def released_bound() -> Term:
    """With the released caps 4 and 25, |SiTU| ≤ 100."""
    return forall([g, u], absolute(SITU(real(4), real(25), g, u)) <= 100)


@lemma
def prove_released_bound() -> Thm:
    """The released bound, for the expert."""
    at = _prove_output_bound()(4, 25, g, u)
    limits = have(at.concl.args[0])
    goal = absolute(SITU(real(4), real(25), g, u)) <= 100
    return kernel.generalize([g, u], exact(goal, kernel.mp(at, limits)))


def _bound_mutants() -> Mapping[str, Term]:
    """Wrong variants of output_bound."""
    free = absolute(SITU(gate_cap, up_cap, g, u)) <= gate_cap * up_cap
    every = [gate_cap, up_cap, g, u]
    return {
        "the gate's cap alone": _bound(gate_cap),
        "half the product": _bound(gate_cap * up_cap / 2),
        "caps of either sign": forall(every, free),
    }


def _released_mutants() -> Mapping[str, Term]:
    """Wrong variants of released_bound."""
    value = absolute(SITU(real(4), real(25), g, u))
    return {"a bound of 99": forall([g, u], value <= 99)}


def _soft_cap_mutants() -> Mapping[str, Term]:
    """Wrong variants of soft_cap_bound."""
    value = absolute(SOFT_CAP(c, x))
    return {
        "half the cap": forall([c, x], implies(c >= 0, value <= c / 2)),
        "a cap of either sign": forall([c, x], value <= c),
        "the cap of the input alone": forall([c, x], implies(c >= 0, value <= 1)),
    }


THEOREMS: Theorems = {
    "soft_cap_bound": Theorem(
        statement=soft_cap_bound,
        proof=_prove_soft_cap_bound,
        scope="all real caps ≥ 0, all reals",
        mutants=_soft_cap_mutants,
    ),
    "output_bound": Theorem(
        statement=output_bound,
        proof=_prove_output_bound,
        scope="all real caps ≥ 0, all real gate and up values",
        mutants=_bound_mutants,
    ),
    "released_bound": Theorem(
        statement=released_bound,
        proof=prove_released_bound,
        scope="all real gate and up values",
        mutants=_released_mutants,
        hints={"a bound of 99": {"g": 30, "u": 90}},
    ),
}
