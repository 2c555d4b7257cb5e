"""How fast SiTU can change: constants for sigmoid, tanh, soft caps and SiTU."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.analysis import EXP, EXP_ADD, EXP_TANGENT
from k3.logic.auto import (
    close,
    exact,
    have,
    lemma,
    parts,
    suppose,
    unfold,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    real,
    var,
)
from k3.logic.terms import Number, Term
from k3.proof import situ
from k3.proof.reals import (
    SIGMOID,
    TANH,
    exp_neg,
    exp_pos,
    product_nonneg,
    product_pos,
    quotient_of,
    same_exp,
    sigmoid_between,
)
from k3.proof.situ import SITU, SOFT_CAP, absolute_product
from k3.proof.theorem import Theorem, Theorems

x, y, g, u, g2, u2 = (var(name, REAL) for name in ("x", "y", "g", "u", "g'", "u'"))


def _apart(left: Term, right: Term, most: Term) -> Term:
    return absolute(left - right) <= most


def sigmoid_changes_slowly() -> Term:
    """|σ(x) − σ(y)| ≤ |x − y|. (The best constant is 1/4.)"""
    return forall([x, y], _apart(SIGMOID(x), SIGMOID(y), absolute(x - y)))


@lemma
def _sigmoid_rises() -> Thm:
    """0 ≤ σ(x) − σ(y) ≤ x − y for x ≥ y."""
    hyps = suppose(x >= y)
    s, t, p, q, d = SIGMOID(x), SIGMOID(y), EXP(-x), EXP(-y), x - y
    inside = [*parts(sigmoid_between()(x)), *parts(sigmoid_between()(y))]
    whole = []
    for value, e, at in ((s, p, x), (t, q, y)):
        law = unfold(SIGMOID, at)
        one = quotient_of(real(1), e + 1, exp_pos()(-at))
        scaled = kernel.congr(value * (e + 1), law, kernel.refl(e + 1))
        whole.append(kernel.trans(scaled, one))
    split = kernel.trans(kernel.sym(same_exp(-y + -d, -x)), EXP_ADD(-y, -d))
    less = product_nonneg(q, EXP(-d) - (real(1) - d), exp_pos()(-y), EXP_TANGENT(-d))
    room = exact(q * d - (q - p) >= 0, split, less)
    falls = _exp_falls(d, *hyps)
    drop = product_nonneg(q, real(1) - EXP(-d), exp_pos()(-y), falls)
    rise = exact(q - p >= 0, split, drop)
    st = product_pos(s, t, *inside)
    up = product_nonneg(s * t, q * d - (q - p), st, room)
    low = product_nonneg(s * t, q - p, st, rise)
    over_s = kernel.congr(s * (t * (q + 1)), kernel.refl(s), whole[1])
    over_t = kernel.congr(t * (s * (p + 1)), kernel.refl(t), whole[0])
    share = kernel.congr(s * d * (t * (q + 1)), kernel.refl(s * d), whole[1])
    last = product_nonneg(d, real(1) - s + s * t, *hyps, *inside, st)
    goal = conj(s - t >= 0, s - t <= d)
    facts = [up, low, over_s, over_t, share, last, *hyps]
    ths = [exact(part, *facts) for part in goal.args]
    return close([x, y], hyps, kernel.conj_intro(*ths))


def _exp_falls(d: Term, *by: Thm) -> Thm:
    """e^−d ≤ 1 for d ≥ 0: e^d ≥ 1 and e^d·e^−d = 1."""
    e, f = EXP(d), EXP(-d)
    more = exact(e - 1 >= 0, EXP_TANGENT(d), *by)
    product = product_nonneg(e - 1, f, more, exp_pos()(-d))
    return exact(real(1) - f >= 0, product, exp_neg()(d))


@lemma
def _prove_sigmoid() -> Thm:
    rises = _sigmoid_rises()
    goal = _apart(SIGMOID(x), SIGMOID(y), absolute(x - y))
    (up,) = suppose(x >= y)
    (down,) = suppose(~up.concl)
    yes = exact(goal, kernel.mp(rises(x, y), up), up)
    no = exact(goal, kernel.mp(rises(y, x), exact(y >= x, down)), down)
    return kernel.generalize([x, y], kernel.by_cases(up.concl, yes, no))


@lemma
def _tanh_is_sigmoid() -> Thm:
    """Tanh x = 2σ(2x) − 1."""
    e, f = EXP(x * 2), EXP(-(x * 2))
    t, s = TANH(x), SIGMOID(x * 2)
    positive = exp_pos()(x * 2)
    tanh = quotient_of(e - 1, e + 1, positive)
    over = kernel.congr(t * (e + 1), unfold(TANH, x), kernel.refl(e + 1))
    one = quotient_of(real(1), f + 1, exp_pos()(-(x * 2)))
    law = kernel.congr(s * (f + 1), unfold(SIGMOID, x * 2), kernel.refl(f + 1))
    whole = kernel.trans(law, one)
    scaled = kernel.congr(e * (s * (f + 1)), kernel.refl(e), whole)
    cancel = kernel.congr(s * (e * f), kernel.refl(s), exp_neg()(x * 2))
    gap = t - (s * 2 - 1)
    none = exact(eq(gap * (e + 1), 0), over, tanh, scaled, cancel)
    zero = have(eq(gap, 0), none, positive)
    return kernel.generalize([x], have(eq(t, s * 2 - 1), zero))


def _cap(c: Number, a: Term, b: Term) -> Thm:
    """|soft_cap(c, a) − soft_cap(c, b)| ≤ 4|a − b|, for a literal c > 0."""
    cap = real(c)
    facts = [_prove_sigmoid()(a / cap * 2, b / cap * 2)]
    for v in (a, b):
        facts += [unfold(SOFT_CAP, cap, v), _tanh_is_sigmoid()(v / cap)]
    goal = _apart(SOFT_CAP(cap, a), SOFT_CAP(cap, b), absolute(a - b) * 4)
    return exact(goal, *facts)


def situ_changes_slowly() -> Term:
    """With the released caps |SiTU(g, u) − SiTU(g′, u′)| ≤ 200 |g − g′| + 16 |u − u′|.
    (The best constants are below 50 and 4.)
    """
    return _situ(200, 16)


def _situ(gate: Number, up: Number) -> Term:
    left, right = SITU(real(4), real(25), g, u), SITU(real(4), real(25), g2, u2)
    most = absolute(g - g2) * gate + absolute(u - u2) * up
    return forall([g, u, g2, u2], _apart(left, right, most))


@lemma
def prove_situ() -> Thm:
    """SiTU's constants."""
    four, high = real(4), real(25)
    a, a2, b, b2 = (
        SOFT_CAP(c, v) for c, v in ((four, g), (four, g2), (high, u), (high, u2))
    )
    s, s2 = SIGMOID(g), SIGMOID(g2)
    dg, du = absolute(g - g2), absolute(u - u2)
    bound = situ.THEOREMS["soft_cap_bound"].proof()
    caps = {v: use(bound(c, v)) for c, v in ((four, g2), (high, u))}
    unit, unit2 = sigmoid_between()(g), sigmoid_between()(g2)
    in_b, in_a2 = caps[u], caps[g2]
    first = absolute_product(a - a2, s, dg * 4, real(1), _cap(4, g, g2), unit)
    first = absolute_product((a - a2) * s, b, dg * 4 * 1, high, first, in_b)
    steps = _prove_sigmoid()(g, g2)
    second = absolute_product(a2, s - s2, four, dg, in_a2, steps)
    second = absolute_product(a2 * (s - s2), b, four * dg, high, second, in_b)
    third = absolute_product(a2, s2, four, real(1), in_a2, unit2)
    last = _cap(25, u, u2)
    third = absolute_product(a2 * s2, b - b2, four * 1, du * 4, third, last)
    laws = [unfold(SITU, 4, 25, g, u), unfold(SITU, 4, 25, g2, u2)]
    left, right = SITU(four, high, g, u), SITU(four, high, g2, u2)
    goal = _apart(left, right, dg * 200 + du * 16)
    terms = ((a - a2) * s * b, a2 * (s - s2) * b, a2 * s2 * (b - b2))
    thirds = (first, second, third)
    most = dg * 200 + du * 16
    sides = [
        exact(sign * (left - right) <= most, *laws, *_sides(terms, thirds, sign))
        for sign in (1, -1)
    ]
    th = exact(goal, *sides)
    return kernel.generalize([g, u, g2, u2], th)


def _sides(terms: tuple[Term, ...], facts: tuple[Thm, ...], sign: int) -> list[Thm]:
    """sign·t ≤ m, from |t| ≤ m."""
    return [
        exact(sign * t <= th.concl.args[1], th)
        for t, th in zip(terms, facts, strict=True)
    ]


def _sigmoid_mutants() -> Mapping[str, Term]:
    """Wrong variants of sigmoid_changes_slowly."""
    fifth = absolute(x - y) / 5
    return {"a constant of 1/5": forall([x, y], _apart(SIGMOID(x), SIGMOID(y), fifth))}


def _situ_mutants() -> Mapping[str, Term]:
    """Wrong variants of situ_changes_slowly."""
    return {"the up value is free": _situ(200, 0), "the gate is free": _situ(0, 16)}


THEOREMS: Theorems = {
    "sigmoid_changes_slowly": Theorem(
        statement=sigmoid_changes_slowly,
        proof=_prove_sigmoid,
        scope="all reals",
        mutants=_sigmoid_mutants,
        hints={"a constant of 1/5": {"x": Fraction(1, 2), "y": Fraction(-1, 2)}},
    ),
    "situ_changes_slowly": Theorem(
        statement=situ_changes_slowly,
        proof=prove_situ,
        scope="all real gate and up values, the released caps",
        mutants=_situ_mutants,
    ),
}
