"""Cross-entropy: the gradient formula is the derivative, for every vocabulary.

A quantitative derivative needs no limits: the loss after a step h differs from
loss + ⟨softmax − label, h⟩ by at most 2·M² for every step with |h| ≤ M ≤ 1/2.
"""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.analysis import EXP, EXP_ADD, EXP_LOG, EXP_TANGENT, LOG
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    exact,
    have,
    lemma,
    list_induction,
    parts,
    restate,
    rewritten,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of, pair_of
from k3.logic.syntax import (
    absolute,
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    lam,
    nil,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import total
from k3.proof.reals import (
    exp_neg,
    exp_pos,
    product_nonneg,
    product_pos,
    quotient_of,
    same_exp,
    square_nonneg,
)
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems

WORD = pair_of(pair_of(REAL, REAL), REAL)  # ((logit, its change), label weight)
words, word, most = var("words", list_of(WORD)), var("word", WORD), var("M", REAL)
x = var("x", REAL)
z, h, y = fst(fst(word)), snd(fst(word)), snd(word)
BODIES = {
    "mass": EXP(z),
    "moved": EXP(z + h),
    "slope": EXP(z) * h,
    "label": y * z,
    "label_moved": y * (z + h),
    "label_change": y * h,
}
SMALL = conj(most >= 0, most * 2 <= 1)


def _sum(name: str, words: Term) -> Term:
    return total(WORD)(lam([word], BODIES[name]), words)


def _within(words: Term) -> Term:
    return every(WORD)(lam([word], absolute(h) <= most), words)


def loss(words: Term, mass: str, label: str) -> Term:
    """Log Σ exp(logits) − Σ label·logit."""
    return LOG(_sum(mass, words)) - _sum(label, words)


def _derivative(slack: Term) -> Term:
    before, after = loss(words, "mass", "label"), loss(words, "moved", "label_moved")
    slope = _sum("slope", words) / _sum("mass", words) - _sum("label_change", words)
    error = absolute(after - before - slope) <= slack
    given = conj(_within(words), SMALL, _sum("mass", words) > 0)
    return forall([words, most], implies(given, error))


def gradient_is_derivative() -> Term:
    """|loss(z + h) − loss(z) − ⟨softmax(z) − label, h⟩| ≤ 2 M² for |h| ≤ M ≤ 1/2: the
    formula softmax − label is the derivative of the cross-entropy, with soft labels.
    """
    return _derivative(most * most * 2)


@lemma
def _exp_upper() -> Thm:
    """Exp x ≤ 1 + x + 2x² for |x| ≤ 1/2."""
    hyps = suppose(absolute(x) * 2 <= 1)
    inverse = exp_neg()(x)
    below = product_nonneg(
        EXP(x), EXP(-x) - (real(1) - x), exp_pos()(x), EXP_TANGENT(-x)
    )
    lead = exact(EXP(x) * (real(1) - x) <= 1, below, inverse)
    gap = EXP(x) - (real(1) + x + x * x * 2)
    square = square_nonneg()(x)
    room = product_nonneg(x * x, real(1) - x * 2, square, *hyps)
    over = suppose(gap > 0)
    far = product_pos(gap, real(1) - x, *over, *hyps)
    no = exact(gap <= 0, far, lead, room)
    th = kernel.by_cases(gap > 0, no, exact(gap <= 0, *suppose(~(gap > 0))))
    return close([x], hyps, exact(EXP(x) <= real(1) + x + x * x * 2, th))


def _one_word(w: Term, given: Thm, small: Thm) -> list[Thm]:
    """e^z (1 + h) ≤ e^(z+h) ≤ e^z (1 + h + 2M²), and |e^z h| ≤ M e^z."""
    a, b = fst(fst(w)), snd(fst(w))
    limits = parts(small)
    upper = use(_exp_upper()(b), exact(absolute(b) * 2 <= 1, given, *limits))
    inside = [exact(b <= most, given), exact(-b <= most, given)]
    square = product_nonneg(most - b, most + b, *inside)
    room = exact(real(1) + b + most * most * 2 - EXP(b) >= 0, upper, square)
    e, split = exp_pos()(a), EXP_ADD(a, b)
    low = product_nonneg(EXP(a), EXP(b) - (b + 1), e, EXP_TANGENT(b))
    high = product_nonneg(EXP(a), real(1) + b + most * most * 2 - EXP(b), e, room)
    sides = [product_nonneg(EXP(a), most + i * b, e, *inside) for i in (1, -1)]
    return [split, low, high, *sides]


def _sums_bound(words: Term) -> Term:
    mass, moved, slope = (_sum(s, words) for s in ("mass", "moved", "slope"))
    return conj(
        mass + slope <= moved,
        moved <= mass + slope + most * most * 2 * mass,
        slope <= most * mass,
        -(most * mass) <= slope,
    )


@lemma
def _sums() -> Thm:
    (small,) = suppose(SMALL)

    def at(words: Term) -> Term:
        return implies(_within(words), _sums_bound(words))

    def step(w: Term, tail: Term, smaller: Thm) -> Thm:
        whole = cons(w, tail)
        (within,) = suppose(_within(whole))
        law = at_next(every(WORD), w, tail, lam([word], absolute(h) <= most))
        own, rest = parts(kernel.eq_mp(law, within))
        facts = [*parts(kernel.mp(smaller, rest)), *_one_word(w, own, small)]
        bodies = [BODIES[s] for s in ("mass", "moved", "slope")]
        laws = [at_next(total(WORD), w, tail, lam([word], b)) for b in bodies]
        goals = _sums_bound(whole).args
        th = kernel.conj_intro(*(rewritten(g, laws, *facts) for g in goals))
        return kernel.discharge(within.concl, th)

    base = auto(at(nil(WORD)), by=[small], defs=[total(WORD), every(WORD)])
    th = list_induction(words, at(words), base, step)
    return close([most], [small], th)


@lemma
def _prove_gradient() -> Thm:
    mass, moved, slope = (_sum(s, words) for s in ("mass", "moved", "slope"))
    hyps = suppose(conj(_within(words), SMALL, mass > 0))
    within, _, high_m, positive = parts(hyps[0])
    small = kernel.conj_elim(hyps[0], 1)
    sums = parts(kernel.mp(kernel.mp(_sums()(most), small)(words), within))
    d, r = slope / mass, moved / mass
    is_d, is_r = quotient_of(slope, mass, positive), quotient_of(moved, mass, positive)
    lower = _cancel(r - (d + 1), mass, positive, [sums[0], is_d, is_r])
    upper = _cancel(d + 1 + most * most * 2 - r, mass, positive, [sums[1], is_d, is_r])
    d_high = _cancel(most - d, mass, positive, [sums[2], is_d])
    d_low = _cancel(most + d, mass, positive, [sums[3], is_d])
    r_big = exact(r * 2 >= 1, lower, d_low, high_m)
    moved_positive = _positive(moved, r, mass, is_r, r_big, positive)
    t = LOG(moved) - LOG(mass)
    whole = kernel.trans(
        kernel.sym(EXP_ADD(t, LOG(mass))), same_exp(t + LOG(mass), LOG(moved))
    )
    logs = [use(EXP_LOG(v), p) for v, p in ((mass, positive), (moved, moved_positive))]
    ratio = _equal_ratio(t, r, mass, whole, logs, is_r, positive)
    high = exact(t <= d + most * most * 2, EXP_TANGENT(t), ratio, upper)
    low = _log_below(t, d, r, [ratio, lower, r_big, d_high, d_low, high_m])
    linear = by_induction(
        words,
        eq(
            _sum("label_moved", words),
            _sum("label", words) + _sum("label_change", words),
        ),
        defs=[total(WORD)],
    )(words)
    statement = gradient_is_derivative()
    before, after = loss(words, "mass", "label"), loss(words, "moved", "label_moved")
    error = after - before - (d - _sum("label_change", words))
    th = exact(absolute(error) <= most * most * 2, high, low, linear)
    return restate(statement, close([words, most], hyps, th))


def _cancel(value: Term, mass: Term, positive: Thm, facts: list[Thm]) -> Thm:
    """value ≥ 0, from value·mass ≥ 0 and mass > 0."""
    product = exact(value * mass >= 0, *facts)
    negative = suppose(value < 0)
    no = exact(value >= 0, product, product_pos(-value, mass, *negative, positive))
    return kernel.by_cases(value < 0, no, exact(value >= 0, *suppose(~(value < 0))))


def _positive(moved: Term, r: Term, mass: Term, is_r: Thm, *by: Thm) -> Thm:
    return exact(moved > 0, is_r, product_pos(r, mass, *by))


def _equal_ratio(t: Term, r: Term, mass: Term, *by: object) -> Thm:
    """e^t = r, both times the mass being the moved mass."""
    whole, logs, is_r, positive = by
    assert isinstance(logs, list)
    assert isinstance(whole, Thm)
    assert isinstance(is_r, Thm)
    assert isinstance(positive, Thm)
    product = kernel.congr(EXP(t) * EXP(LOG(mass)), kernel.refl(EXP(t)), logs[0])
    both = exact(eq((EXP(t) - r) * mass, 0), product, whole, logs[1], is_r)
    return have(eq(EXP(t), r), both, positive)


def _log_below(t: Term, d: Term, r: Term, by: list[Thm]) -> Thm:
    """t ≥ d − 2M², from e^t = r ≥ 1 + d: then e^(−t) = 1/r ≤ 1 − d + 2d²."""
    ratio, lower, r_big, *limits = by
    v = real(1) / r
    is_v = quotient_of(real(1), r, r_big)
    inverse = kernel.trans(
        kernel.sym(kernel.congr(EXP(t) * EXP(-t), ratio, kernel.refl(EXP(-t)))),
        exp_neg()(t),
    )
    e_v = exact(eq((EXP(-t) - v) * r, 0), inverse, is_v)
    same = have(eq(EXP(-t), v), e_v, r_big)
    square = product_nonneg(most - d, most + d, *limits)
    room = product_nonneg(d * d, d * 2 + 1, square_nonneg()(d), *limits)
    polynomial = real(1) - d + d * d * 2
    over = suppose(v > polynomial)
    top = exact(polynomial >= 0, square_nonneg()(d), *limits)
    far = product_pos(v - polynomial, r, *over, r_big)
    more = product_nonneg(polynomial, r - (d + 1), top, lower)
    no = exact(v <= polynomial, far, more, is_v, room)
    below = kernel.by_cases(
        v > polynomial, no, exact(v <= polynomial, *suppose(~(v > polynomial)))
    )
    return exact(t >= d - most * most * 2, EXP_TANGENT(-t), same, below, square)


def _mutants() -> Mapping[str, Term]:
    before, after = loss(words, "mass", "label"), loss(words, "moved", "label_moved")
    slope = _sum("slope", words) / _sum("mass", words)
    error = absolute(after - before - slope) <= most * most * 2
    given = conj(_within(words), SMALL, _sum("mass", words) > 0)
    return {
        "softmax without the label": forall([words, most], implies(given, error)),
        "no slack": _derivative(real(0)),
    }


EIGHTH = Fraction(1, 8)
STEP = {
    "M": EIGHTH,
    "words": (
        ((Fraction(0), EIGHTH), Fraction(1)),
        ((Fraction(0), -EIGHTH), Fraction(0)),
    ),
}
THEOREMS: Theorems = {
    "gradient_is_derivative": Theorem(
        statement=gradient_is_derivative,
        proof=_prove_gradient,
        scope="all vocabularies, all logits, soft labels, all steps up to 1/2",
        mutants=_mutants,
        hints={"softmax without the label": STEP, "no slack": STEP},
    ),
}
