"""The EAGLE-3 draft: what it starts from, its unroll, and when its loss is infinite."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    close,
    have,
    lemma,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    implies,
    ite,
    lam,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.sums import (
    SUM,
    sigma,
    sum_congruence,
    sum_pick,
)
from k3.proof.theorem import Theorem, Theorems

n, j, m = (var(v, INT) for v in "njm")
low, middle, high = (var(v, fun(INT, REAL)) for v in ("low", "middle", "high"))

# [low mid high] of width 3n, and row j of [0 0 I]
TRIPLE = define(
    "triple[draft]",
    [n, low, middle, high, m],
    ite(m < n, low(m), ite(m < n * 2, middle(m - n), high(m - n * 2))),
)
INITIAL = define(
    "initial_fusion[draft]", [n, j, m], ite(eq(m, n * 2 + j), real(1), real(0))
)
FUSED = define(
    "fused[draft]",
    [n, low, middle, high, j],
    sigma(n * 3, INITIAL(n, j, m) * TRIPLE(n, low, middle, high, m), m),
)
FEATURES = [low, middle, high]


def fusion_starts_from_high() -> Term:
    """With W_E3 = [0 0 I] the fused feature is the final block's, entry by entry."""
    inside = conj(j >= 0, j < n)
    value = eq(FUSED(n, *FEATURES, j), high(j))
    return forall([n, *FEATURES, j], implies(inside, value))


@lemma
def _prove_fusion() -> Thm:
    (h,) = hyps = suppose(conj(j >= 0, j < n))
    at = n * 2 + j
    triple = TRIPLE(n, *FEATURES, m)
    pick = ite(eq(m, at), triple, real(0))
    body = INITIAL(n, j, m) * triple
    same = kernel.abstract([m], have(eq(body, pick), unfold(INITIAL, n, j, m)))
    whole = kernel.congr(SUM(lam([m], body), n * 3), same, kernel.refl(n * 3))
    picked = use(sum_pick()(n * 3, at, lam([m], triple)), *hyps)
    value = unfold(TRIPLE, n, *FEATURES, at)
    index = kernel.congr(
        high(at - n * 2), kernel.refl(high), kernel.ring(at - n * 2, j)
    )
    goal = eq(FUSED(n, *FEATURES, j), high(j))
    law = unfold(FUSED, n, *FEATURES, j)
    th = kernel.ground(goal, [law, whole, picked, value, index, h])
    return close([n, *FEATURES, j], hyps, th)


def _fusion_mutants() -> Mapping[str, Term]:
    """Wrong variants of fusion_starts_from_high."""
    inside = conj(j >= 0, j < n)
    value = FUSED(n, *FEATURES, j)
    return {
        "starts from the first block": forall(
            [n, *FEATURES, j], implies(inside, eq(value, low(j)))
        ),
        "beyond the width": forall(
            [n, *FEATURES, j], implies(j >= 0, eq(value, high(j)))
        ),
    }


i = var("i", INT)
W, F = (var(name, fun(INT, INT, REAL)) for name in "WF")
embedding, feature = (var(name, fun(INT, REAL)) for name in ("embedding", "feature"))
# row i of W embedding + F feature
INPUT = define(
    "draft_input[draft]",
    [n, W, F, embedding, feature, i],
    sigma(n, W(i, j) * embedding(j), j) + sigma(n, F(i, j) * feature(j), j),
)


def _input(name: Term) -> Term:
    fused = INPUT(n, W, F, embedding, lam([j], FUSED(n, *FEATURES, j)), i)
    same = eq(fused, INPUT(n, W, F, embedding, name, i))
    return forall([n, W, F, embedding, *FEATURES, i], implies(n >= 0, same))


def input_starts_from_high() -> Term:
    """With W_E3 = [0 0 I] the draft layer's input is W embedding + F high."""
    return _input(high)


@lemma
def _prove_input() -> Thm:
    hyps = suppose(n >= 0)
    fused = lam([j], FUSED(n, *FEATURES, j))
    left, right = lam([j], F(i, j) * fused(j)), lam([j], F(i, j) * high(j))
    inside = suppose(conj(j >= 0, j < n))
    at = use(_prove_fusion()(n, *FEATURES, j), *inside)
    entry = F(i, j) * FUSED(n, *FEATURES, j)
    scaled = kernel.congr(entry, kernel.refl(F(i, j)), at)
    agree = close([j], inside, scaled)
    rule = sum_congruence()
    whole = _same_sum(rule, left, right, agree, hyps[0])
    laws = [unfold(INPUT, n, W, F, embedding, f, i) for f in (fused, high)]
    same = eq(*(law.concl.args[0] for law in laws))
    th = have(same, whole, *laws)
    return close([n, W, F, embedding, *FEATURES, i], hyps, th)


def _same_sum(rule: Thm, left: Term, right: Term, agree: Thm, dim: Thm) -> Thm:
    """Σ left = Σ right over i < n, for functions that agree below n."""
    at = rule(*_order(rule, left, right))
    while at.concl.op == "=>":
        premise = at.concl.args[0]
        at = kernel.mp(at, agree if premise.op == "forall" else have(premise, dim))
    return at


def _order(rule: Thm, left: Term, right: Term) -> list[Term]:
    """The variables of the sum's law in its own order: two functions and a number."""
    assert isinstance(rule.concl.data, tuple)
    functions = iter((left, right))
    return [next(functions) if s.head == "Fun" else n for s in rule.concl.data]


def _input_mutants() -> Mapping[str, Term]:
    """Wrong variants of input_starts_from_high."""
    return {"reads the middle feature": _input(middle)}


WIDTHS = "all widths, features and weights"
THEOREMS: Theorems = {
    "fusion_starts_from_high": Theorem(
        statement=fusion_starts_from_high,
        proof=_prove_fusion,
        scope=WIDTHS,
        mutants=_fusion_mutants,
    ),
    "input_starts_from_high": Theorem(
        statement=input_starts_from_high,
        proof=_prove_input,
        scope=WIDTHS,
        mutants=_input_mutants,
    ),
}
