"""Quantized experts: error of a product, of an expert end to end, of the mixture.

A unit is one hidden or input coordinate; its weight w is stored as s·E2M1(w / s), with
the scale s of its block of 32.
"""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    exact,
    have,
    lemma,
    parts,
    restate,
    suppose,
    unfold,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.match import prenex
from k3.logic.sorts import REAL, fun, list_of, named
from k3.logic.syntax import (
    absolute,
    conj,
    forall,
    implies,
    lam,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.lipschitz import prove_situ
from k3.proof.lists import total
from k3.proof.mx import E2M1, MAGNITUDE, prove_block
from k3.proof.reals import (
    product_nonneg,
)
from k3.proof.situ import SITU, absolute_product, prove_released_bound
from k3.proof.sums import (
    every,
)
from k3.proof.theorem import Theorem, Theorems

UNIT = named("Unit")
x, x2, e, w, s = (var(name, fun(UNIT, REAL)) for name in ("x", "x'", "e", "w", "s"))
i, units = var("i", UNIT), var("units", list_of(UNIT))
a, b, c, d, r = (var(name, REAL) for name in ("a", "b", "c", "d", "r"))
ADD, ALL_OF = total(UNIT), every(UNIT)
MXFP4 = define("mxfp4", [a, b], b * E2M1(a / b))
COVERED = conj(s(i) > 0, absolute(w(i)) <= s(i) * 6)


def _sum(value: Term) -> Term:
    return ADD(lam([i], value), units)


def _all(fact: Term) -> Term:
    return ALL_OF(lam([i], fact), units)


STORED = MXFP4(w(i), s(i))


@lemma
def _stored_weight() -> Thm:
    """A covered weight a under scale b: |stored − a| ≤ b and |stored| ≤ 6 b."""
    hyps = suppose(conj(b > 0, absolute(a) <= b * 6))
    error = kernel.mp(prove_block()(b, a), hyps[0])
    law = unfold(MXFP4, a, b)
    near = exact(absolute(MXFP4(a, b) - a) <= b, error, law)
    code = _code_at_most_six()(a / b)
    up = product_nonneg(b, real(6) - E2M1(a / b), code, *hyps)
    down = product_nonneg(b, real(6) + E2M1(a / b), code, *hyps)
    small = exact(absolute(MXFP4(a, b)) <= b * 6, up, down, law)
    return close([a, b], hyps, kernel.conj_intro(near, small))


@lemma
def _code_at_most_six() -> Thm:
    """Every E2M1 value is within ±6."""
    laws = [unfold(E2M1, a), unfold(MAGNITUDE, a), unfold(MAGNITUDE, -a)]
    return kernel.generalize([a], kernel.ground(absolute(E2M1(a)) <= 6, laws))


@lemma
def _one_product() -> Thm:
    """|c·stored − d·a| ≤ r·6b + |d|·b, for |c − d| ≤ r and a covered weight a."""
    covered, near = hyps = suppose(
        conj(b > 0, absolute(a) <= b * 6), absolute(c - d) <= r
    )
    stored = MXFP4(a, b)
    known = parts(kernel.mp(_stored_weight()(a, b), covered))
    first = absolute_product(c - d, stored, r, b * 6, near, known[1])
    size = exact(absolute(d) <= absolute(d))
    second = absolute_product(d, stored - a, absolute(d), b, size, known[0])
    goal = absolute(c * stored - d * a) <= r * (b * 6) + absolute(d) * b
    return close([a, b, c, d, r], hyps, exact(goal, first, second))


def _summed(fact: Term, left: Term, right: Term, most: Term, one: Thm) -> Thm:
    """|Σ left − Σ right| ≤ Σ most, where `one` proves fact ⇒ |left − right| ≤ most."""
    error, bound = _sum(left) - _sum(right), _sum(most)
    goal = implies(_all(fact), conj(error <= bound, -bound <= error))
    th = by_induction(units, goal, by=[kernel.generalize([i], one)], defs=[ADD, ALL_OF])
    hyps = suppose(_all(fact))
    at = kernel.mp(th(units), hyps[0])
    whole = exact(absolute(error) <= bound, at)
    return kernel.generalize([units], kernel.discharge(hyps[0].concl, whole))


def execution_error() -> Term:
    """With encoded activations x′ within e of x, and MXFP4 weights, a product is off by
    at most Σ (e_i·6 s_i + |x_i| s_i).
    """
    fact = conj(COVERED, absolute(x2(i) - x(i)) <= e(i))
    error = absolute(_sum(x2(i) * STORED) - _sum(x(i) * w(i)))
    goal = error <= _sum(e(i) * (s(i) * 6) + absolute(x(i)) * s(i))
    return forall([x, x2, e, w, s, units], implies(_all(fact), goal))


@lemma
def _prove_execution() -> Thm:
    fact = conj(COVERED, absolute(x2(i) - x(i)) <= e(i))
    hyps = suppose(fact)
    covered, near = (kernel.conj_elim(hyps[0], k) for k in (0, 1))
    one = _one_product()(w(i), s(i), x2(i), x(i), e(i))
    one = kernel.discharge(fact, kernel.mp(kernel.mp(one, covered), near))
    most = e(i) * (s(i) * 6) + absolute(x(i)) * s(i)
    th = _summed(fact, x2(i) * STORED, x(i) * w(i), most, one)
    return restate(execution_error(), kernel.generalize([x, x2, e, w, s], th))


g, g2, eg, u, u2, eu = (
    var(name, fun(UNIT, REAL)) for name in ("g", "g'", "eg", "u", "u'", "eu")
)
FOUR, CAP = real(4), real(25)
HIDDEN = SITU(FOUR, CAP, g(i), u(i))
CHANGED = SITU(FOUR, CAP, g2(i), u2(i))
EVERY = [g, g2, eg, u, u2, eu, x2, e, w, s, units]
FITS = conj(
    COVERED,
    absolute(g2(i) - g(i)) <= eg(i),
    absolute(u2(i) - u(i)) <= eu(i),
    absolute(x2(i) - CHANGED) <= e(i),
)


def _expert(gate: int, up: int, hidden: int) -> Term:
    spread = eg(i) * gate + eu(i) * up + e(i)
    most = spread * (s(i) * 6) + s(i) * hidden
    error = absolute(_sum(x2(i) * STORED) - _sum(HIDDEN * w(i)))
    return forall(EVERY, implies(_all(FITS), error <= _sum(most)))


def expert_error() -> Term:
    """A quantized expert against the exact one, end to end: with gate and up values off
    by at most eg and eu, hidden values encoded within e, and MXFP4 down weights, each
    output is off by at most Σ ((200 eg + 16 eu + e)·6 s + 100 s).
    """
    return _expert(200, 16, 100)


@lemma
def _prove_expert() -> Thm:
    hyps = suppose(FITS)
    covered, gate, up, encoded = (kernel.conj_elim(hyps[0], k) for k in range(4))
    spread = eg(i) * 200 + eu(i) * 16 + e(i)
    slow = prove_situ()(g2(i), u2(i), g(i), u(i))
    near = exact(absolute(x2(i) - HIDDEN) <= spread, slow, gate, up, encoded)
    one = _one_product()(w(i), s(i), x2(i), HIDDEN, spread)
    one = kernel.mp(kernel.mp(one, covered), near)
    small = prove_released_bound()(g(i), u(i))
    positive = kernel.conj_elim(covered, 0)
    room = product_nonneg(real(100) - absolute(HIDDEN), s(i), small, positive)
    most = spread * (s(i) * 6) + s(i) * 100
    goal = absolute(x2(i) * STORED - HIDDEN * w(i)) <= most
    one = kernel.discharge(FITS, have(goal, one, room))
    th = _summed(FITS, x2(i) * STORED, HIDDEN * w(i), most, one)
    return prenex(kernel.generalize(EVERY[:-1], th))


y, y2, share, bound = (var(name, fun(UNIT, REAL)) for name in ("y", "y'", "p", "bound"))
CLOSE = conj(share(i) >= 0, absolute(y2(i) - y(i)) <= bound(i))


def _mixture(most: Term) -> Term:
    error = absolute(_sum(share(i) * y2(i)) - _sum(share(i) * y(i)))
    given = implies(_all(CLOSE), error <= most)
    return forall([share, y, y2, bound, units], given)


def mixture_error() -> Term:
    """On a given route, the mixture of quantized experts is off by at most Σ p·bound,
    the same mixture of the experts' bounds.
    """
    return _mixture(_sum(share(i) * bound(i)))


@lemma
def _prove_mixture() -> Thm:
    hyps = suppose(CLOSE)
    own = [
        product_nonneg(share(i), bound(i) + sign * (y2(i) - y(i)), *hyps)
        for sign in (1, -1)
    ]
    most = share(i) * bound(i)
    goal = absolute(share(i) * y2(i) - share(i) * y(i)) <= most
    one = kernel.discharge(CLOSE, exact(goal, *own))
    th = _summed(CLOSE, share(i) * y2(i), share(i) * y(i), most, one)
    return prenex(kernel.generalize([share, y, y2, bound], th))


def _execution_mutants() -> Mapping[str, Term]:
    """Wrong variants of execution_error."""
    fact = conj(COVERED, absolute(x2(i) - x(i)) <= e(i))
    error = absolute(_sum(x2(i) * STORED) - _sum(x(i) * w(i)))
    weights, inputs = e(i) * (s(i) * 6), absolute(x(i)) * s(i)
    every_ = [x, x2, e, w, s, units]
    return {
        "only the weights' part": forall(
            every_, implies(_all(fact), error <= _sum(inputs))
        ),
        "only the inputs' part": forall(
            every_, implies(_all(fact), error <= _sum(weights))
        ),
    }


def _expert_mutants() -> Mapping[str, Term]:
    """Wrong variants of expert_error."""
    return {
        "without the hidden values": _expert(200, 16, 0),
        "the gate's error left out": _expert(0, 16, 100),
    }


def _mixture_mutants() -> Mapping[str, Term]:
    return {"bounds without the weights": _mixture(_sum(bound(i)))}


def _one(**values: Fraction) -> dict[str, object]:
    """One unit with these values."""
    out: dict[str, object] = {k: (lambda _, v=v: v) for k, v in values.items()}
    return {**out, "units": ("Unit0",)}


ONE, FIVE = Fraction(1), Fraction(5)
ANY = "all widths, weights, covering scales and activations"
THEOREMS: Theorems = {
    "execution_error": Theorem(
        statement=execution_error,
        proof=_prove_execution,
        scope=ANY,
        mutants=_execution_mutants,
        hints={
            "only the weights' part": _one(
                **{"x": ONE, "x'": 2 * ONE, "e": ONE, "w": FIVE, "s": ONE}
            ),
            "only the inputs' part": _one(
                **{"x": ONE, "x'": ONE, "e": 0 * ONE, "w": FIVE, "s": ONE}
            ),
        },
    ),
    "expert_error": Theorem(
        statement=expert_error,
        proof=_prove_expert,
        scope=f"{ANY}, the released caps",
        mutants=_expert_mutants,
        hints={
            "without the hidden values": _one(
                **dict.fromkeys(("g", "g'"), 30 * ONE),
                **dict.fromkeys(("u", "u'"), 90 * ONE),
                **dict.fromkeys(("eg", "eu"), 0 * ONE),
                **{"x'": 100 * ONE, "e": ONE, "w": FIVE, "s": ONE},
            ),
            "the gate's error left out": _one(
                **{"g": 0 * ONE, "g'": ONE, "eg": ONE, "eu": 0 * ONE},
                **dict.fromkeys(("u", "u'"), 90 * ONE),
                **{"x'": Fraction(94, 5), "e": ONE, "w": 6 * ONE, "s": ONE},
            ),
        },
    ),
    "mixture_error": Theorem(
        statement=mixture_error,
        proof=_prove_mixture,
        scope="all routes, all weights ≥ 0, any number of experts",
        mutants=_mixture_mutants,
        hints={
            "bounds without the weights": _one(
                **{"p": 2 * ONE, "y": ONE, "y'": 2 * ONE, "bound": ONE}
            ),
        },
    ),
}
