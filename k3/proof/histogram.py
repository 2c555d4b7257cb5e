"""Quantiles from histograms: pooling shards, and the bin that is selected."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    auto,
    by_induction,
    close,
    exact,
    lemma,
    list_induction,
    restate,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, fun, list_of
from k3.logic.syntax import (
    absolute,
    conj,
    cons,
    eq,
    forall,
    implies,
    lam,
    nil,
    real,
    var,
)
from k3.logic.terms import Term, subst
from k3.proof.balance import one_if
from k3.proof.lists import total
from k3.proof.reals import product_nonneg
from k3.proof.sums import SUM, sigma, sum_add, sum_zero
from k3.proof.theorem import Theorem, Theorems

theta = var("theta", REAL)
HISTOGRAM = fun(INT, REAL)
shards, shard = var("shards", list_of(HISTOGRAM)), var("shard", HISTOGRAM)
bins, b = var("bins", INT), var("b", INT)


def _pooled(bins: Term) -> Term:
    add = total(HISTOGRAM)
    pooled = sigma(bins, add(lam([shard], shard(b)), shards), b)
    return eq(pooled, add(lam([shard], SUM(shard, bins)), shards))


def pooled_counts_are_summed_counts() -> Term:
    """Cumulative counts of pooled histograms are the sums of the shards' counts."""
    return forall([bins, shards], implies(bins >= 0, _pooled(bins)))


@lemma
def _prove_pooled() -> Thm:
    hyps = suppose(bins >= 0)
    add = total(HISTOGRAM)

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        rest = add(lam([shard], shard(b)), tail)
        split = use(sum_add()(bins, h, lam([b], rest)), *hyps)
        at = subst(_pooled(bins), {shards: cons(h, tail)})
        return auto(at, by=[split, smaller], defs=[add])

    nothing = subst(_pooled(bins), {shards: nil(HISTOGRAM)})
    base = auto(nothing, by=[use(sum_zero()(bins), *hyps)], defs=[add])
    th = list_induction(shards, _pooled(bins), base, step)
    return restate(pooled_counts_are_summed_counts(), close([bins], hyps, th))


values, value = var("values", list_of(REAL)), var("value", REAL)
low, high, rank = (var(v, REAL) for v in ("low", "high", "rank"))


def _below(edge: Term, *, or_at: bool = False) -> Term:
    test = value <= edge if or_at else value < edge
    return total(REAL)(lam([value], one_if(test)), values)


def _in_bin(inside: Term) -> Term:
    chosen = conj(_below(low) < rank, rank <= _below(high))
    quantile = conj(_below(theta) < rank, rank <= _below(theta, or_at=True))
    every = [low, high, rank, theta, values]
    return forall(every, implies(conj(chosen, quantile), inside))


def selected_bin_contains_quantile() -> Term:
    """If fewer than `rank` values are below the bin and at least `rank` are below its
    upper edge, then a value with that rank lies in the bin.
    """
    return _in_bin(conj(low <= theta, theta < high))


@lemma
def _prove_bin() -> Thm:
    chosen = conj(_below(low) < rank, rank <= _below(high))
    quantile = conj(_below(theta) < rank, rank <= _below(theta, or_at=True))
    hyps = suppose(conj(chosen, quantile))
    x, y = var("x", REAL), var("y", REAL)
    weak = implies(x < y, _below(x, or_at=True) <= _below(y))
    strict = implies(x <= y, _below(x) <= _below(y))
    monotone = [
        by_induction(values, forall([x, y], phi), defs=[total(REAL)])(values)
        for phi in (weak, strict)
    ]
    left, right = suppose(~(low <= theta))[0], suppose(~(theta < high))[0]
    under = use(monotone[0](theta, low), left)
    over = use(monotone[1](high, theta), right)
    first = exact(low <= theta, under, *hyps)
    second = exact(theta < high, over, *hyps)
    inside = kernel.conj_intro(
        kernel.by_cases(low <= theta, kernel.assume(low <= theta), first),
        kernel.by_cases(theta < high, kernel.assume(theta < high), second),
    )
    return close([low, high, rank, theta, values], hyps, inside)


fraction, width = var("fraction", REAL), var("width", REAL)


def _estimate(error: Term) -> Term:
    inside = conj(low <= theta, theta <= low + width)
    share = conj(fraction >= 0, fraction <= 1)
    every = [low, width, fraction, theta]
    return forall(every, implies(conj(inside, share, width >= 0), error))


def estimate_within_one_bin() -> Term:
    """A value interpolated in the bin of the quantile is within one bin width of it."""
    return _estimate(absolute(low + fraction * width - theta) <= width)


@lemma
def _prove_estimate() -> Thm:
    inside = conj(low <= theta, theta <= low + width)
    share = conj(fraction >= 0, fraction <= 1)
    hyps = suppose(conj(inside, share, width >= 0))
    sides = [
        product_nonneg(fraction, width, *hyps),
        product_nonneg(real(1) - fraction, width, *hyps),
    ]
    goal = absolute(low + fraction * width - theta) <= width
    return close([low, width, fraction, theta], hyps, exact(goal, *sides, *hyps))


def _bin_mutants() -> Mapping[str, Term]:
    return {"strictly above the lower edge": _in_bin(low < theta)}


def _pooled_mutants() -> Mapping[str, Term]:
    """Wrong variants of pooled_counts_are_summed_counts."""
    add = total(HISTOGRAM)
    pooled = sigma(bins, add(lam([shard], shard(b)), shards), b)
    summed, fewer = (add(lam([shard], SUM(shard, n)), shards) for n in (bins, bins - 1))
    some = bins >= 1
    return {
        "a bin less on every shard": forall(
            [bins, shards], implies(some, eq(pooled, fewer))
        ),
        "twice the counts": forall(
            [bins, shards], implies(some, eq(pooled, summed + summed))
        ),
    }


THEOREMS: Theorems = {
    "pooled_counts_are_summed_counts": Theorem(
        statement=pooled_counts_are_summed_counts,
        proof=_prove_pooled,
        scope="all numbers of shards and bins",
        mutants=_pooled_mutants,
    ),
    "selected_bin_contains_quantile": Theorem(
        statement=selected_bin_contains_quantile,
        proof=_prove_bin,
        scope="all numbers of values, all real ranks and edges, ties included",
        mutants=_bin_mutants,
        hints={
            "strictly above the lower edge": {
                "low": Fraction(1),
                "high": Fraction(2),
                "theta": Fraction(1),
                "rank": Fraction(1),
                "values": (Fraction(1),),
            }
        },
    ),
    "estimate_within_one_bin": Theorem(
        statement=estimate_within_one_bin,
        proof=_prove_estimate,
        scope="all bins, all real quantiles in them",
        mutants=lambda: {
            "half a bin": _estimate(
                absolute(low + fraction * width - theta) <= width / 2
            )
        },
        hints={
            "half a bin": {
                "low": Fraction(0),
                "theta": Fraction(0),
                "width": Fraction(1),
                "fraction": Fraction(1),
            }
        },
    ),
}
