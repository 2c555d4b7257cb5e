"""Floating point: the rounding error of a dot product, for every length."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    close,
    exact,
    lemma,
    list_induction,
    parts,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, REAL, list_of, pair_of
from k3.logic.syntax import (
    TRUE,
    absolute,
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    nil,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.reals import product_nonneg
from k3.proof.theorem import Theorem, Theorems

NUMBERS = pair_of(REAL, REAL)
STEP = pair_of(NUMBERS, NUMBERS)  # ((x, y), (error of the product, of the sum))
steps, u = var("steps", list_of(STEP)), var("u", REAL)


def _product(step: Term) -> Term:
    return fst(fst(step)) * snd(fst(step))


ROUNDED = recursive(  # fl(Σ x y): every product and every sum is rounded
    "rounded_dot",
    [steps],
    REAL,
    lambda: real(0),
    lambda h, t, rec: (rec() + _product(h) * (fst(snd(h)) + 1)) * (snd(snd(h)) + 1),
)
DOT = recursive(
    "dot", [steps], REAL, lambda: real(0), lambda h, t, rec: rec() + _product(h)
)
ABSOLUTE = recursive(
    "absolute_dot",
    [steps],
    REAL,
    lambda: real(0),
    lambda h, t, rec: rec() + absolute(_product(h)),
)
GROWTH = recursive(  # (1 + u)^(n + 1)
    "growth", [u, steps], REAL, lambda u: u + 1, lambda h, t, rec, u: rec(u) * (u + 1)
)
WITHIN = recursive(  # every rounding error is at most u
    "within",
    [u, steps],
    BOOL,
    lambda u: TRUE,
    lambda h, t, rec, u: conj(
        conj(absolute(fst(snd(h))) <= u, absolute(snd(snd(h))) <= u), rec(u)
    ),
)
DEFS = [ROUNDED, DOT, ABSOLUTE, GROWTH, WITHIN]


def _given(steps: Term) -> Term:
    return conj(WITHIN(u, steps), u >= 0)


def _error(steps: Term, most: Term) -> Term:
    return absolute(ROUNDED(steps) - DOT(steps)) <= most


def _statement(most: Term) -> Term:
    return forall([steps, u], implies(_given(steps), _error(steps, most)))


def dot_product_error() -> Term:
    """|fl(x·y) − x·y| ≤ ((1 + u)^(n+1) − 1)·Σ |x y|, if every rounding is within a
    factor 1 ± u and the sum runs in the order of the list.
    """
    return _statement((GROWTH(u, steps) - 1) * ABSOLUTE(steps))


def _claim(steps: Term) -> Term:
    most = (GROWTH(u, steps) - 1) * ABSOLUTE(steps)
    sizes = conj(ABSOLUTE(steps) >= 0, absolute(DOT(steps)) <= ABSOLUTE(steps))
    return implies(
        _given(steps), conj(_error(steps, most), GROWTH(u, steps) >= u + 1, sizes)
    )


def _one_step(h: Term, tail: Term, smaller: Thm) -> Thm:
    whole = cons(h, tail)
    hyps = suppose(_given(whole))
    laws = [at_next(d, h, tail) for d in (ROUNDED, DOT, ABSOLUTE)]
    grow, within = (at_next(d, h, tail, u) for d in (GROWTH, WITHIN))
    given = kernel.ground(_given(tail), [*hyps, within])
    error, more, nonneg, size = parts(kernel.mp(smaller, given))
    natural = kernel.conj_elim(hyps[0], 1)
    d, p = fst(snd(h)), snd(snd(h))
    both = kernel.ground(conj(absolute(d) <= u, absolute(p) <= u), [*hyps, within])
    d_in, p_in = parts(both)
    x, e = _product(h), ROUNDED(tail) - DOT(tail)
    a, g, s = ABSOLUTE(tail), GROWTH(u, tail), absolute(x)
    twice, limit = (d + 1) * (p + 1) - 1, (u + 1) * (u + 1) - 1
    grown = _grown_error(e, (g - 1) * a, p, [error, natural, p_in])
    rounded = _times(p, DOT(tail), u, a, [p_in, size])
    inner = _twice_rounded(d, p, natural, d_in, p_in)
    product = _times(x, twice, s, limit, [exact(absolute(x) <= s), inner])
    split = exact(
        eq(ROUNDED(whole) - DOT(whole), e * (p + 1) + p * DOT(tail) + x * twice),
        *laws[:2],
    )
    total = exact(
        absolute(ROUNDED(whole) - DOT(whole))
        <= (g - 1) * a * (u + 1) + u * a + s * limit,
        split,
        grown,
        rounded,
        product,
    )
    power = exact(
        g * (u + 1) >= (u + 1) * (u + 1),
        product_nonneg(g - (u + 1), u + 1, more, natural),
    )
    gain = product_nonneg(s, g * (u + 1) - (u + 1) * (u + 1), power, exact(s >= 0))
    return _assembled(
        whole, hyps, [total, gain, more, natural, nonneg, size], [*laws, grow]
    )


def _twice_rounded(d: Term, p: Term, *by: Thm) -> Thm:
    """|(1 + d)(1 + p) − 1| ≤ (1 + u)² − 1."""
    twice, limit = (d + 1) * (p + 1) - 1, (u + 1) * (u + 1) - 1
    signs = [(i, j) for i in (1, -1) for j in (1, -1)]
    sides = [product_nonneg(u + i * d, u + j * p, *by) for i, j in signs]
    return exact(absolute(twice) <= limit, *by, *sides)


def _grown_error(e: Term, most: Term, p: Term, by: list[Thm]) -> Thm:
    """|e| ≤ E and |p| ≤ u give |e·(1 + p)| ≤ E·(1 + u)."""
    size = absolute(e)
    error, natural, p_in = by
    wide = [
        product_nonneg(most - size, u + 1, error, natural),
        product_nonneg(size, u - p, exact(size >= 0), p_in),
        product_nonneg(size, u + p + 2, exact(size >= 0), natural, p_in),
    ]
    return exact(absolute(e * (p + 1)) <= most * (u + 1), *wide)


def _times(a: Term, b: Term, most_a: Term, most_b: Term, by: list[Thm]) -> Thm:
    """|ab| ≤ AB."""
    sides = [
        product_nonneg(most_a + i * a, most_b + j * b, *by)
        for i in (1, -1)
        for j in (1, -1)
    ]
    return exact(absolute(a * b) <= most_a * most_b, *sides)


def _assembled(whole: Term, hyps: list[Thm], facts: list[Thm], laws: list[Thm]) -> Thm:
    h, tail = whole.args
    total, gain, more, natural, nonneg, size = facts
    s, g = absolute(_product(h)), GROWTH(u, tail)
    a = ABSOLUTE(tail)
    bound = (g * (u + 1) - 1) * (a + s)
    below = exact(absolute(ROUNDED(whole) - DOT(whole)) <= bound, total, gain)
    grow = kernel.congr(GROWTH(u, whole) - 1, laws[3], kernel.refl(real(1)))
    right = kernel.congr((GROWTH(u, whole) - 1) * ABSOLUTE(whole), grow, laws[2])
    most = (GROWTH(u, whole) - 1) * ABSOLUTE(whole)
    error = exact(_error(whole, most), below, right)
    power = exact(
        GROWTH(u, whole) >= u + 1,
        laws[3],
        more,
        product_nonneg(g, u, more, natural),
        natural,
    )
    sizes = [
        exact(ABSOLUTE(whole) >= 0, laws[2], nonneg),
        exact(absolute(DOT(whole)) <= ABSOLUTE(whole), laws[1], laws[2], size),
    ]
    th = kernel.conj_intro(error, power, kernel.conj_intro(*sizes))
    return kernel.discharge(hyps[0].concl, th)


@lemma
def _prove_error() -> Thm:
    base = auto(_claim(nil(STEP)), defs=DEFS)
    th = list_induction(steps, _claim(steps), base, _one_step)
    hyps = suppose(_given(steps))
    at = kernel.conj_elim(use(th(steps), *hyps), 0)
    return close([steps, u], hyps, at)


def _mutants() -> Mapping[str, Term]:
    n_u = absolute(DOT(steps)) * (GROWTH(u, steps) - 1)
    return {
        "|x·y| for Σ |x y|": _statement(n_u),
        "no rounding": _statement(real(0)),
    }


def _step(
    x: int, y: int, d: Fraction, p: Fraction
) -> tuple[tuple[Fraction, Fraction], ...]:
    return ((Fraction(x), Fraction(y)), (d, p))


EIGHTH = Fraction(1, 8)
CANCEL = {
    "u": EIGHTH,
    "steps": (_step(1, 1, EIGHTH, EIGHTH), _step(-1, 1, -EIGHTH, EIGHTH)),
}
THEOREMS: Theorems = {
    "dot_product_error": Theorem(
        statement=dot_product_error,
        proof=_prove_error,
        scope="all lengths, all reals, all rounding errors within u, summed in order",
        mutants=_mutants,
        hints={"|x·y| for Σ |x y|": CANCEL, "no rounding": CANCEL},
    ),
}
