"""Interpolation at a fractional rank q, in the bin that the rank ⌈q⌉ selects."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    close,
    exact,
    have,
    lemma,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    implies,
    maximum,
    minimum,
    real,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.reals import (
    product_nonneg,
    product_pos,
    quotient_of,
)
from k3.proof.theorem import Theorem, Theorems

before, count, need = (var(name, INT) for name in ("before", "count", "need"))
q, q2, low, width, theta = (
    var(name, REAL) for name in ("q", "q'", "low", "width", "theta")
)
CEILING = conj(to_real(need) - 1 < q, q <= to_real(need))
# counts before the bin < q ≤ counts through it
SELECTED = conj(to_real(before) < q, q <= to_real(before + count))
SHARE = define(
    "share[fractional]",
    [before, count, q],
    (q - to_real(before)) / to_real(count),
)
CLIPPED = define(
    "clipped[fractional]",
    [before, count, q],
    maximum(real(0), minimum(real(1), SHARE(before, count, q))),
)
ESTIMATE = define(
    "estimate[fractional]",
    [before, count, q, low, width],
    low + CLIPPED(before, count, q) * width,
)
RANK = [before, count, q]


def ceiling_selects_the_bin() -> Term:
    """⌈q⌉ is a rank of a bin exactly when q is: before < q ≤ before + count."""
    whole = conj(before < need, need <= before + count)
    return forall([*RANK, need], implies(CEILING, eq(whole, SELECTED)))


@lemma
def _prove_ceiling() -> Thm:
    whole = conj(before < need, need <= before + count)
    hyps = suppose(CEILING)
    return close([*RANK, need], hyps, kernel.ground(eq(whole, SELECTED), hyps))


def _ceiling_mutants() -> Mapping[str, Term]:
    """Wrong variants of ceiling_selects_the_bin."""
    whole = conj(before <= need, need < before + count)
    return {
        "ranks from 0": forall([*RANK, need], implies(CEILING, eq(whole, SELECTED)))
    }


def clip_is_never_needed() -> Term:
    """For a rank q in the selected bin, (q − before) / count is in (0, 1]: clipping
    it changes nothing.
    """
    share = SHARE(before, count, q)
    same = eq(CLIPPED(before, count, q), share)
    goal = conj(share > 0, share <= 1, same)
    return forall(RANK, implies(SELECTED, goal))


@lemma
def _prove_clip() -> Thm:
    hyps = suppose(SELECTED)
    share, size = SHARE(before, count, q), to_real(count)
    positive = kernel.ground(size >= 1, hyps)
    above = kernel.ground(q - to_real(before) > 0, hyps)
    below = kernel.ground(q - to_real(before) <= size, hyps)
    whole = quotient_of(q - to_real(before), size, positive)
    law = unfold(SHARE, before, count, q)
    scaled = kernel.trans(kernel.congr(share * size, law, kernel.refl(size)), whole)
    (under,) = suppose(share <= 0)
    no = exact(share > 0, product_nonneg(-share, size, under, positive), scaled, above)
    low = kernel.by_cases(under.concl, no, exact(share > 0, *suppose(~under.concl)))
    (over,) = suppose(share > 1)
    far = product_pos(share - 1, size, over, positive)
    no = exact(share <= 1, far, scaled, below)
    high = kernel.by_cases(over.concl, no, exact(share <= 1, *suppose(~over.concl)))
    clip = unfold(CLIPPED, before, count, q)
    same = have(eq(CLIPPED(before, count, q), share), clip, low, high)
    return close(RANK, hyps, kernel.conj_intro(low, high, same))


def estimate_within_one_width() -> Term:
    """The estimate at a fractional rank is in the selected bin, so it is at most one
    bin width from the ⌈q⌉-th smallest value, which is in that bin.
    """
    return _estimate(width)


def _estimate(most: Term) -> Term:
    value = ESTIMATE(before, count, q, low, width)
    inside = conj(low <= theta, theta <= low + width)
    near = implies(inside, absolute(value - theta) <= most)
    goal = conj(low <= value, value <= low + width, near)
    given = conj(SELECTED, width >= 0)
    return forall([*RANK, low, width, theta], implies(given, goal))


@lemma
def _prove_estimate() -> Thm:
    inside = suppose(conj(low <= theta, theta <= low + width))
    hyps = suppose(conj(SELECTED, width >= 0))
    value, clipped = ESTIMATE(before, count, q, low, width), CLIPPED(before, count, q)
    known = use(_prove_clip()(*RANK), *hyps)
    law = unfold(ESTIMATE, before, count, q, low, width)
    unit = [have(clipped >= 0, known), have(real(1) - clipped >= 0, known)]
    up = product_nonneg(clipped, width, unit[0], *hyps)
    down = product_nonneg(real(1) - clipped, width, unit[1], *hyps)
    facts = [law, up, down, kernel.conj_elim(hyps[0], 1)]
    sides = [exact(g, *facts) for g in (low <= value, value <= low + width)]
    near = exact(absolute(value - theta) <= width, *sides, *inside)
    last = kernel.discharge(inside[0].concl, near)
    goal = kernel.conj_intro(*sides, last)
    return close([*RANK, low, width, theta], hyps, goal)


def _clip_mutants() -> Mapping[str, Term]:
    """Wrong variants of clip_is_never_needed."""
    share = SHARE(before, count, q)
    late = implies(SELECTED, share < 1)
    free = share > 0
    return {"strictly below 1": forall(RANK, late), "any q": forall(RANK, free)}


def _estimate_mutants() -> Mapping[str, Term]:
    """Wrong variants of estimate_within_one_width."""
    return {"half a width": _estimate(width / 2)}


EDGE = {
    "before": 0,
    "count": 1,
    "q": Fraction(1),
    "low": Fraction(0),
    "width": Fraction(2),
    "theta": Fraction(0),
}
THEOREMS: Theorems = {
    "ceiling_selects_the_bin": Theorem(
        statement=ceiling_selects_the_bin,
        proof=_prove_ceiling,
        scope="all real ranks, all integer counts",
        mutants=_ceiling_mutants,
    ),
    "clip_is_never_needed": Theorem(
        statement=clip_is_never_needed,
        proof=_prove_clip,
        scope="all real ranks, all integer counts",
        mutants=_clip_mutants,
        hints={"strictly below 1": EDGE},
    ),
    "estimate_within_one_width": Theorem(
        statement=estimate_within_one_width,
        proof=_prove_estimate,
        scope="all real ranks, integer counts, bins and values in the selected bin",
        mutants=_estimate_mutants,
        hints={"half a width": EDGE},
    ),
}
