"""The draft head's start: fusion weights [0 0 I] pass the last feature through."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import close, exact, lemma, suppose, use
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import conj, eq, forall, implies, ite, lam, real, var
from k3.logic.terms import Term
from k3.proof.sums import SUM, sigma, sum_pick, sum_zero
from k3.proof.theorem import Theorem, Theorems

n, i, j = var("n", INT), var("i", INT), var("j", INT)
low, middle, high = (var(v, fun(INT, REAL)) for v in ("low", "middle", "high"))
EVERY = [n, low, middle, high, j]


def _fused(eye: Term) -> Term:
    """Coordinate j of low·0 + middle·0 + high·M."""
    return (
        sigma(n, low(i) * 0, i)
        + sigma(n, middle(i) * 0, i)
        + sigma(n, high(i) * eye, i)
    )


def _statement(eye: Term, result: Term) -> Term:
    inside = conj(n >= 0, j >= 0, j < n)
    return forall(EVERY, implies(inside, eq(_fused(eye), result)))


IDENTITY = ite(eq(i, j), real(1), real(0))


def initial_fusion_is_high_feature() -> Term:
    """With fusion weights [0 0 I] the fused feature is exactly the high feature."""
    return _statement(IDENTITY, high(j))


@lemma
def _prove_fusion() -> Thm:
    hyps = suppose(conj(n >= 0, j >= 0, j < n))
    zero = use(sum_zero()(n), *hyps)
    nothing = []
    for feature in (low, middle):
        same = kernel.abstract([i], kernel.ring(feature(i) * 0, real(0)))
        whole = SUM(lam([i], feature(i) * 0), n)
        nothing.append(kernel.trans(kernel.congr(whole, same, kernel.refl(n)), zero))
    picked = ite(eq(i, j), high(i), real(0))
    each = kernel.abstract([i], exact(eq(high(i) * IDENTITY, picked)))
    whole = SUM(lam([i], high(i) * IDENTITY), n)
    last = kernel.congr(whole, each, kernel.refl(n))
    at = use(sum_pick()(n, j, high), *hyps)
    th = exact(eq(_fused(IDENTITY), high(j)), *nothing, last, at)
    return close(EVERY, hyps, th)


def _mutants() -> Mapping[str, Term]:
    return {
        "the low feature": _statement(IDENTITY, low(j)),
        "a matrix of ones": _statement(real(1), high(j)),
    }


THEOREMS: Theorems = {
    "initial_fusion_is_high_feature": Theorem(
        statement=initial_fusion_is_high_feature,
        proof=_prove_fusion,
        scope="all widths, all features",
        mutants=_mutants,
    ),
}
