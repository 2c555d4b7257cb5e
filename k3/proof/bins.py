"""Quantiles from histograms: the selected bin holds a value; the range of biases."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import at_next, close, exact, lemma, suppose, use
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL
from k3.logic.syntax import conj, forall, implies, var
from k3.logic.terms import Term
from k3.proof.sums import SUM, f
from k3.proof.theorem import Theorem, Theorems

b, rank = var("b", INT), var("rank", REAL)
low, high, cutoff, score = (var(v, REAL) for v in ("low", "high", "cutoff", "score"))


def _count(first: Term, last: Term, then: Term) -> Term:
    """Under: bin b is selected, fewer than rank before it, rank through it."""
    selected = conj(SUM(f, first) < rank, rank <= SUM(f, last))
    return forall([f, b, rank], implies(conj(b >= 0, selected), then))


def selected_bin_is_not_empty() -> Term:
    """A bin with fewer than `rank` counts before it and at least `rank` through it has
    a positive count.
    """
    return _count(b, b + 1, f(b) > 0)


@lemma
def _prove_count() -> Thm:
    selected = conj(SUM(f, b) < rank, rank <= SUM(f, b + 1))
    hyps = suppose(conj(b >= 0, selected))
    added = use(at_next(SUM, b, f), *hyps)
    return close([f, b, rank], hyps, exact(f(b) > 0, added, *hyps))


def _range(edges: Term, then: Term) -> Term:
    """Under: the score is a probability, the cutoff within what biases allow."""
    fair = conj(score >= 0, score <= 1)
    return forall([low, high, cutoff, score], implies(conj(fair, edges), then))


EDGES = conj(low <= cutoff, cutoff <= high + 1)


def required_bias_within_range() -> Term:
    """For a score in [0, 1] and a cutoff from the least bias to 1 above the largest,
    the bias that lifts the score to the cutoff is at most 1 outside their range.
    """
    bias = cutoff - score
    return _range(EDGES, conj(low - 1 <= bias, bias <= high + 1))


@lemma
def _prove_range() -> Thm:
    hyps = suppose(conj(conj(score >= 0, score <= 1), EDGES))
    bias = cutoff - score
    sides = [exact(goal, *hyps) for goal in (low - 1 <= bias, bias <= high + 1)]
    return close([low, high, cutoff, score], hyps, kernel.conj_intro(*sides))


def _count_mutants() -> Mapping[str, Term]:
    """Wrong variants of selected_bin_is_not_empty."""
    weak = conj(SUM(f, b) <= rank, rank <= SUM(f, b + 1))
    return {
        "as many before it as the rank": forall(
            [f, b, rank], implies(conj(b >= 0, weak), f(b) > 0)
        ),
        "the bin after it": _count(b, b + 1, f(b + 1) > 0),
        "two bins through": _count(b, b + 2, f(b) > 0),
    }


def _range_mutants() -> Mapping[str, Term]:
    """Wrong variants of required_bias_within_range."""
    bias = cutoff - score
    return {
        "the range of the biases": _range(EDGES, conj(low <= bias, bias <= high)),
        "strict for weak inequality": _range(EDGES, bias < high + 1),
    }


THEOREMS: Theorems = {
    "selected_bin_is_not_empty": Theorem(
        statement=selected_bin_is_not_empty,
        proof=_prove_count,
        scope="all histograms, all bins, all real ranks and counts",
        mutants=_count_mutants,
    ),
    "required_bias_within_range": Theorem(
        statement=required_bias_within_range,
        proof=_prove_range,
        scope="all real biases, cutoffs and scores in their ranges",
        mutants=_range_mutants,
        hints={
            "strict for weak inequality": {
                "low": Fraction(0),
                "high": Fraction(0),
                "cutoff": Fraction(1),
                "score": Fraction(0),
            }
        },
    ),
}
