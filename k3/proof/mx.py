"""Microscaling: E2M1 rounds to nearest; block errors are at most the scale."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import close, exact, lemma, suppose, unfold
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL
from k3.logic.syntax import absolute, conj, forall, implies, ite, maximum, real, var
from k3.logic.terms import Number, Term
from k3.proof.reals import product_nonneg, product_pos, quotient_of
from k3.proof.theorem import Theorem, Theorems

x, scale, value = var("x", REAL), var("scale", REAL), var("value", REAL)
MAGNITUDES = [Fraction(m, 2) for m in (0, 1, 2, 3, 4, 6, 8, 12)]
CODES = sorted({s * m for s in (1, -1) for m in MAGNITUDES})
# the largest input of each magnitude, and whether the tie belongs to it (even code)
STEPS = [
    (Fraction(1, 4), True),
    (Fraction(3, 4), False),
    (Fraction(5, 4), True),
    (Fraction(7, 4), False),
    (Fraction(5, 2), True),
    (Fraction(7, 2), False),
    (Fraction(5), True),
]


def _nearest_magnitude() -> Term:
    out = real(MAGNITUDES[-1])
    for (limit, tie), m in reversed(list(zip(STEPS, MAGNITUDES, strict=False))):
        out = ite(x <= limit if tie else x < limit, real(m), out)
    return out


MAGNITUDE = define("e2m1_magnitude", [x], _nearest_magnitude())
E2M1 = define("e2m1", [x], ite(x >= 0, MAGNITUDE(x), -MAGNITUDE(-x)))
LAWS = [unfold(E2M1, x), unfold(MAGNITUDE, x), unfold(MAGNITUDE, -x)]


def _nearest(code: Number) -> Term:
    return absolute(E2M1(x) - x) <= absolute(real(code) - x)


def e2m1_is_nearest() -> Term:
    """Rounding to E2M1 is at least as close as every one of the 15 values."""
    return forall([x], conj(*map(_nearest, CODES)))


@lemma
def _prove_nearest() -> Thm:
    ths = [kernel.ground(_nearest(code), LAWS) for code in CODES]
    return kernel.generalize([x], kernel.conj_intro(*ths))


def _error(most: Term) -> Term:
    goal = absolute(E2M1(x) - x) <= most
    return forall([x], implies(absolute(x) <= 6, goal))


def e2m1_error_at_most_one() -> Term:
    """Within [−6, 6] rounding to E2M1 changes a value by at most 1."""
    return _error(real(1))


@lemma
def prove_error() -> Thm:
    """The error bound, for the block bounds."""
    hyps = suppose(absolute(x) <= 6)
    goal = absolute(E2M1(x) - x) <= 1
    return close([x], hyps, kernel.ground(goal, [*hyps, *LAWS]))


def _relative(quarter: Number) -> Term:
    return _error(maximum(real(quarter), absolute(x) / 5))


def e2m1_relative_error() -> Term:
    """Within [−6, 6] the error is at most 1/4 or |x| / 5, whichever is larger."""
    return _relative(Fraction(1, 4))


@lemma
def _prove_relative() -> Thm:
    hyps = suppose(absolute(x) <= 6)
    goal = absolute(E2M1(x) - x) <= maximum(real(Fraction(1, 4)), absolute(x) / 5)
    return close([x], hyps, kernel.ground(goal, [*hyps, *LAWS]))


def _block(most: Term) -> Term:
    covered = conj(scale > 0, absolute(value) <= scale * 6)
    error = absolute(scale * E2M1(value / scale) - value)
    return forall([scale, value], implies(covered, error <= most))


def block_error_at_most_scale() -> Term:
    """A value covered by its block (|v| ≤ 6 s) is decoded with error at most s."""
    return _block(scale)


@lemma
def prove_block() -> Thm:
    """The block bound, for sums of blocks."""
    covered = conj(scale > 0, absolute(value) <= scale * 6)
    hyps = suppose(covered)
    w = value / scale
    whole = quotient_of(value, scale, *hyps)
    error = kernel.mp(prove_error()(w), _within(w, whole, hyps))
    up = product_nonneg(scale, real(1) - (E2M1(w) - w), error, *hyps)
    down = product_nonneg(scale, real(1) + (E2M1(w) - w), error, *hyps)
    goal = absolute(scale * E2M1(w) - value) <= scale
    return close([scale, value], hyps, exact(goal, up, down, whole))


def _within(w: Term, whole: Thm, hyps: list[Thm]) -> Thm:
    """|w| ≤ 6: otherwise |w|·scale > 6·scale ≥ |value|."""
    goal = absolute(w) <= 6
    above, below = w > 6, w < -6
    (over,), (under,) = suppose(above), suppose(below)
    no_over = exact(goal, product_pos(w - 6, scale, over, *hyps), whole, *hyps)
    no_under = exact(goal, product_pos(-w - 6, scale, under, *hyps), whole, *hyps)
    fine = exact(goal, *suppose(~below), *suppose(~above))
    return kernel.by_cases(above, no_over, kernel.by_cases(below, no_under, fine))


def _nearest_mutants() -> Mapping[str, Term]:
    return {
        "7 as another value": forall([x], _nearest(Fraction(7))),
    }


def _error_mutants() -> Mapping[str, Term]:
    return {
        "strict for weak inequality": forall(
            [x], implies(absolute(x) <= 6, absolute(E2M1(x) - x) < 1)
        ),
        "beyond the largest value": forall(
            [x], implies(absolute(x) <= 8, absolute(E2M1(x) - x) <= 1)
        ),
    }


def _block_mutants() -> Mapping[str, Term]:
    unscaled = absolute(E2M1(value) - value) <= scale
    covered = conj(scale > 0, absolute(value) <= scale * 6)
    return {
        "half the scale": _block(scale / 2),
        "the scale is missing": forall([scale, value], implies(covered, unscaled)),
    }


THEOREMS: Theorems = {
    "e2m1_is_nearest": Theorem(
        statement=e2m1_is_nearest,
        proof=_prove_nearest,
        scope="all reals, all 15 values of the format",
        mutants=_nearest_mutants,
        hints={"7 as another value": {"x": Fraction(7)}},
    ),
    "e2m1_error_at_most_one": Theorem(
        statement=e2m1_error_at_most_one,
        proof=prove_error,
        scope="all reals in [−6, 6]",
        mutants=_error_mutants,
        hints={
            "strict for weak inequality": {"x": Fraction(5)},
            "beyond the largest value": {"x": Fraction(15, 2)},
        },
    ),
    "e2m1_relative_error": Theorem(
        statement=e2m1_relative_error,
        proof=_prove_relative,
        scope="all reals in [−6, 6]",
        mutants=lambda: {"an eighth": _relative(Fraction(1, 8))},
        hints={"an eighth": {"x": Fraction(1, 4)}},
    ),
    "block_error_at_most_scale": Theorem(
        statement=block_error_at_most_scale,
        proof=prove_block,
        scope="all positive scales, all covered reals",
        mutants=_block_mutants,
        hints={
            "half the scale": {"scale": Fraction(1), "value": Fraction(5)},
            "the scale is missing": {"scale": Fraction(5, 12), "value": Fraction(5, 2)},
        },
    ),
}
