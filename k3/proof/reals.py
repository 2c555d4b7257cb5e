"""Lemmas about real numbers: products, exp, and the functions defined from it."""

from k3.logic import kernel
from k3.logic.analysis import EXP, EXP_ADD, EXP_LOG, EXP_TANGENT, LOG
from k3.logic.auto import close, exact, have, lemma, suppose, unfold, use
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL
from k3.logic.syntax import conj, eq, real, var
from k3.logic.terms import Term

x, y, z = (var(n, REAL) for n in "xyz")

SIGMOID = define("sigmoid", [x], real(1) / (EXP(-x) + 1))
TANH = define("tanh", [x], (EXP(x * 2) - 1) / (EXP(x * 2) + 1))


@lemma
def mul_nonneg() -> Thm:
    """x ≥ 0 and y ≥ 0 give xy ≥ 0."""
    hyps = suppose(conj(x >= 0, y >= 0))
    return close([x, y], hyps, exact(x * y >= 0, *hyps, degree=2))


@lemma
def mul_pos() -> Thm:
    """x > 0 and y > 0 give xy > 0."""
    hyps = suppose(conj(x > 0, y > 0))
    return close([x, y], hyps, exact(x * y > 0, *hyps, degree=2))


@lemma
def square_nonneg() -> Thm:
    """x² ≥ 0."""
    yes = exact(x * x >= 0, *suppose(x >= 0), degree=2)
    no = exact(x * x >= 0, *suppose(~(x >= 0)), degree=2)
    return kernel.generalize([x], kernel.by_cases(x >= 0, yes, no))


def product_nonneg(a: Term, b: Term, *by: Thm) -> Thm:
    """ab ≥ 0, where both follow from these facts."""
    return use(mul_nonneg()(a, b), *by)


def product_pos(a: Term, b: Term, *by: Thm) -> Thm:
    """ab > 0, where both follow from these facts."""
    return use(mul_pos()(a, b), *by)


@lemma
def quotient() -> Thm:
    """(x / y)·y = x for y ≠ 0."""
    hyps = suppose(~eq(y, 0))
    return close([x, y], hyps, have(eq(x / y * y, x), *hyps))


def quotient_of(a: Term, b: Term, *by: Thm) -> Thm:
    """(a / b)·b = a, where b ≠ 0 follows from these facts."""
    return use(quotient()(a, b), *by)


def same_exp(a: Term, b: Term) -> Thm:
    """Exp a = exp b for equal polynomials a and b."""
    return kernel.congr(EXP(a), kernel.ring(a, b))


@lemma
def exp_zero() -> Thm:
    """exp 0 = 1."""
    zero = real(0)
    square = EXP_ADD(0, 0)  # e = e·e and e ≥ 1
    tangent = EXP_TANGENT(0)
    same = same_exp(zero + zero, zero)
    e = EXP(zero)
    above = suppose(e > 1)
    excess = product_pos(e, e - 1, *above)
    no = exact(e <= 1, excess, square, same)
    le = kernel.by_cases(e > 1, no, exact(e <= 1, *suppose(~(e > 1))))
    return exact(eq(e, 1), le, tangent)


@lemma
def exp_neg() -> Thm:
    """Exp x · exp(−x) = 1."""
    by = [EXP_ADD(x, -x), same_exp(x + -x, real(0)), exp_zero()]
    return kernel.generalize([x], exact(eq(EXP(x) * EXP(-x), 1), *by))


@lemma
def exp_pos() -> Thm:
    """Exp x > 0."""
    half = x / 2
    root = EXP(half)
    whole = kernel.trans(kernel.sym(same_exp(half + half, x)), EXP_ADD(half, half))
    at_least = exact(EXP(x) >= 0, whole, square_nonneg()(root))
    zero = suppose(~(EXP(x) > 0))
    is_zero = exact(eq(EXP(x), 0), at_least, *zero)
    product = kernel.congr(EXP(x) * EXP(-x), is_zero, kernel.refl(EXP(-x)))
    no = exact(EXP(x) > 0, product, exp_neg()(x))
    yes = kernel.assume(EXP(x) > 0)
    return kernel.generalize([x], kernel.by_cases(EXP(x) > 0, yes, no))


@lemma
def exp_increases() -> Thm:
    """X < y gives exp x < exp y."""
    hyps = suppose(x < y)
    step = y - x
    grown = kernel.trans(kernel.sym(same_exp(x + step, y)), EXP_ADD(x, step))
    more = exact(EXP(step) - 1 > 0, EXP_TANGENT(step), *hyps)
    gain = product_pos(EXP(x), EXP(step) - 1, exp_pos()(x), more)
    return close([x, y], hyps, exact(EXP(x) < EXP(y), grown, gain))


@lemma
def log_one() -> Thm:
    """Log x = 0 exactly when x = 1, for x > 0."""
    hyps = suppose(x > 0)
    back = use(EXP_LOG(x), *hyps)
    up, down = exp_increases()(real(0), LOG(x)), exp_increases()(LOG(x), real(0))
    goal = eq(eq(LOG(x), 0), eq(x, 1))
    same = kernel.assume(eq(LOG(x), 0))
    at_zero = kernel.congr(EXP(LOG(x)), same)
    there = kernel.discharge(same.concl, exact(eq(x, 1), at_zero, back, exp_zero()))
    one = kernel.assume(eq(x, 1))
    not_up = have(LOG(x) <= 0, up, back, one, exp_zero())
    not_down = have(LOG(x) >= 0, down, back, one, exp_zero())
    here = kernel.discharge(one.concl, exact(eq(LOG(x), 0), not_up, not_down))
    th = kernel.iff_intro(there, here)
    assert th.concl is goal
    return close([x], hyps, th)


@lemma
def sigmoid_between() -> Thm:
    """0 < σ(x) < 1."""
    positive = exp_pos()(-x)
    below = EXP(-x) + 1
    whole = quotient_of(real(1), below, positive)
    unit = _unit(real(1) / below, below, positive, whole)
    goal = conj(SIGMOID(x) > 0, SIGMOID(x) < 1)
    return kernel.generalize([x], have(goal, unfold(SIGMOID, x), *unit))


def _unit(value: Term, below: Term, positive: Thm, whole: Thm) -> list[Thm]:
    """0 < value < 1, from value·below = 1 and below > 1."""
    low = kernel.by_cases(
        value > 0,
        kernel.assume(value > 0),
        exact(
            value > 0,
            whole,
            product_nonneg(-value, below, *suppose(~(value > 0)), positive),
        ),
    )
    high = kernel.by_cases(
        value < 1,
        kernel.assume(value < 1),
        exact(
            value < 1,
            whole,
            positive,
            product_nonneg(value - 1, below, *suppose(~(value < 1)), positive),
        ),
    )
    return [low, high]


@lemma
def tanh_between() -> Thm:
    """−1 < tanh x < 1."""
    e = EXP(x * 2)
    positive = exp_pos()(x * 2)
    below, value = e + 1, real(1) / (e + 1)
    whole = quotient_of(real(1), below, positive)
    rest = quotient_of(e - 1, below, positive)
    unit = _unit(value, below, positive, whole)
    t = (e - 1) / (e + 1)
    gap = t - (real(1) - value * 2)  # tanh x = 1 − 2 / (e^2x + 1)
    none = exact(eq(gap * below, 0), rest, whole)
    zero = have(eq(gap, 0), none, positive)
    law = unfold(TANH, x)
    goal = conj(TANH(x) > -1, TANH(x) < 1)
    return kernel.generalize([x], have(goal, law, zero, *unit))
