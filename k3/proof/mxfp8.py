"""An MXFP8 encoder with its certificate, for both formats: nearest code, any scale.

Within one binade the codes are whole steps: m mantissa bits give 2^m steps between a
power of two and the next; below the least normal number the steps stay the same.
"""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    exact,
    lemma,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.match import opened
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL
from k3.logic.syntax import (
    absolute,
    conj,
    forall,
    implies,
    integer,
    ite,
    real,
    to_real,
    var,
)
from k3.logic.terms import Number, Term, subst
from k3.proof.reals import (
    product_nonneg,
    product_pos,
    quotient_of,
)
from k3.proof.theorem import Theorem, Theorems

z, a, s, step, sign = (var(name, REAL) for name in ("z", "a", "s", "step", "sign"))
n = var("n", INT)

# the number of whole steps nearest to z >= 0, among 0..n; a tie goes up
NEAREST = recursive(
    "nearest_step",
    [z, n],
    INT,
    lambda z: integer(0),
    lambda n, rec, z: ite(to_real(n) + Fraction(1, 2) <= z, n + 1, rec(z)),
)
ENCODED = define(
    "mxfp8_magnitude",
    [a, s, step, n],
    s * step * to_real(NEAREST(a / (s * step), n)),
)
# mantissa bits and the least step of each format
FORMATS = {"E4M3": (3, Fraction(1, 2**9)), "E5M2": (2, Fraction(1, 2**16))}


def nearest_within_half() -> Term:
    """For 0 ≤ z ≤ n the nearest whole number of steps is at most 1/2 from z, and in
    0..n.
    """
    at = NEAREST(z, n)
    inside = conj(z >= 0, z <= to_real(n))
    error = absolute(to_real(at) - z)
    goal = conj(error * 2 <= 1, at >= 0, at <= n)
    return forall([z, n], implies(conj(inside, n >= 0), goal))


@lemma
def _prove_nearest() -> Thm:
    at = NEAREST(z, n)
    goal = conj(
        to_real(at) - z <= Fraction(1, 2),
        at >= 0,
        at <= n,
        implies(z <= to_real(n) + Fraction(1, 2), z - to_real(at) <= Fraction(1, 2)),
    )
    (h,) = suppose(z >= 0)
    th = by_induction(n, goal, by=[h], defs=[NEAREST])
    hyps = suppose(conj(conj(z >= 0, z <= to_real(n)), n >= 0))
    low = kernel.conj_elim(kernel.conj_elim(hyps[0], 0), 0)
    every_ = kernel.discharge(h.concl, th)
    known = kernel.mp(kernel.mp(every_, low)(n), kernel.conj_elim(hyps[0], 1))
    error = absolute(to_real(at) - z)
    goals = [
        kernel.ground(g, [known, *hyps]) for g in (error * 2 <= 1, at >= 0, at <= n)
    ]
    return close([z, n], hyps, kernel.conj_intro(*goals))


def _prove_half_step(bits: int) -> Thm:
    """Up to the end of a binade the nearest code is within half a step, times s."""
    hyps = suppose(conj(a >= 0, s > 0, step > 0, a <= s * step * 2 ** (bits + 1)))
    facts = [kernel.conj_elim(hyps[0], k) for k in range(4)]
    unit, top = s * step, integer(2 ** (bits + 1))
    positive = product_pos(s, step, *facts[1:3])
    whole = quotient_of(a, unit, positive)
    z = a / unit
    (low,) = suppose(z < 0)
    no = exact(z >= 0, product_pos(-z, unit, low, positive), whole, facts[0])
    nonneg = kernel.by_cases(low.concl, no, exact(z >= 0, *suppose(~low.concl)))
    (over,) = suppose(z > 2 ** (bits + 1))
    far = product_pos(z - 2 ** (bits + 1), unit, over, positive)
    no = exact(z <= 2 ** (bits + 1), far, whole, facts[3])
    yes = exact(z <= 2 ** (bits + 1), *suppose(~over.concl))
    limit = kernel.ground(z <= to_real(top), [kernel.by_cases(over.concl, no, yes)])
    near = use(_prove_nearest()(z, top), nonneg, limit)
    k, half = to_real(NEAREST(z, top)), kernel.conj_elim(near, 0)
    sides = [
        product_nonneg(unit, real(Fraction(1, 2)) + i * (k - z), positive, half)
        for i in (1, -1)
    ]
    law = unfold(ENCODED, a, s, step, top)
    value = absolute(ENCODED(a, s, step, top) - a)
    error = exact(value * 2 <= unit, law, whole, *sides)
    return close([a, s, step], hyps, error)


f = var("f", REAL)


def _certificate(bits: int, least: Fraction, share: Number = 1) -> Term:
    top = integer(2 ** (bits + 1))
    normal, small = s * step * 2**bits * (f + 1), s * least * 2**bits * f
    first = absolute(ENCODED(normal, s, step, top) - normal)
    second = absolute(ENCODED(small, s, real(least), top) - small)
    goal = conj(
        first <= normal * (share * Fraction(1, 2 ** (bits + 1))),
        second <= s * (share * least / 2),
    )
    given = conj(s > 0, step > 0, f >= 0, f <= 1)
    return forall([s, step, f], implies(given, goal))


def e4m3_certificate() -> Term:
    """E4M3, any scale s: a magnitude (1 + f)·2^k s is encoded within a relative 2^-4,
    and one below the least normal number within s·2^-10.
    """
    return _certificate(*FORMATS["E4M3"])


def e5m2_certificate() -> Term:
    """E5M2, any scale s: a magnitude (1 + f)·2^k s is encoded within a relative 2^-3,
    and one below the least normal number within s·2^-17.
    """
    return _certificate(*FORMATS["E5M2"])


def _prove_certificate(bits: int, least: Fraction) -> Thm:
    hyps = suppose(conj(s > 0, step > 0, f >= 0, f <= 1))
    normal, small = s * step * 2**bits * (f + 1), s * least * 2**bits * f
    unit = product_pos(s, step, *hyps)
    rest = product_nonneg(s * step, real(1) - f, unit, *hyps)
    up = product_nonneg(s * step, f, unit, *hyps)
    rule = _prove_half_step(bits)
    ths = []
    for value, size, more in (
        (normal, step, [unit, rest, up]),
        (
            small,
            real(least),
            [
                product_nonneg(s, f, *hyps),
                product_nonneg(s, real(1) - f, *hyps),
            ],
        ),
    ):
        at = rule(value, s, size)
        given = [exact(g, *more, *hyps) for g in at.concl.args[0].args]
        ths.append(kernel.mp(at, kernel.conj_intro(*given)))
    whole = _goals(_certificate(bits, least))
    out = [exact(g, th, up, *hyps) for g, th in zip(whole, ths, strict=True)]
    return close([s, step, f], hyps, kernel.conj_intro(*out))


def _goals(phi: Term) -> tuple[Term, ...]:
    """The two parts of the certificate about the variables of this file."""
    vs, body = opened(phi)
    goal = subst(body.args[1], dict(zip(vs, (s, step, f), strict=True)))
    return goal.args


@lemma
def _prove_e4m3() -> Thm:
    return _prove_certificate(*FORMATS["E4M3"])


@lemma
def _prove_e5m2() -> Thm:
    return _prove_certificate(*FORMATS["E5M2"])


def _e4m3_mutants() -> Mapping[str, Term]:
    """Wrong variants of e4m3_certificate."""
    return {"half the bound": _certificate(*FORMATS["E4M3"], Fraction(1, 2))}


def _e5m2_mutants() -> Mapping[str, Term]:
    """Wrong variants of e5m2_certificate."""
    return {"half the bound": _certificate(*FORMATS["E5M2"], Fraction(1, 2))}


def _nearest_mutants() -> Mapping[str, Term]:
    """Wrong variants of nearest_within_half."""
    error = absolute(to_real(NEAREST(z, n)) - z)
    given = conj(z >= 0, n >= 0)
    return {
        "beyond the last step": forall([z, n], implies(given, error * 2 <= 1)),
        "within a quarter": forall(
            [z, n], implies(conj(given, z <= to_real(n)), error * 4 <= 1)
        ),
    }


TIE = {"s": Fraction(1), "step": Fraction(1), "f": Fraction(1, 16)}
ANY = "all scales, all binades, all magnitudes up to the largest; ties go up"
THEOREMS: Theorems = {
    "nearest_within_half": Theorem(
        statement=nearest_within_half,
        proof=_prove_nearest,
        scope="all reals in range, all step counts",
        mutants=_nearest_mutants,
    ),
    "e4m3_certificate": Theorem(
        statement=e4m3_certificate,
        proof=_prove_e4m3,
        scope=ANY,
        mutants=_e4m3_mutants,
        hints={"half the bound": TIE},
    ),
    "e5m2_certificate": Theorem(
        statement=e5m2_certificate,
        proof=_prove_e5m2,
        scope=ANY,
        mutants=_e5m2_mutants,
        hints={"half the bound": {**TIE, "f": Fraction(1, 8)}},
    ),
}
