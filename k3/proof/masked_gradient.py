"""The gradient formula of the masked loss is its derivative."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    have,
    lemma,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.match import opened
from k3.logic.sorts import fun, list_of
from k3.logic.syntax import (
    absolute,
    conj,
    forall,
    implies,
    lam,
    real,
    var,
)
from k3.logic.terms import Term, subst
from k3.proof import loss
from k3.proof.lists import total
from k3.proof.masked_loss import THEOREMS as MASKED
from k3.proof.masked_mean import ALL_OF, COUNT, KEPT_SUM, MEAN, POSITION, kept, p, xs
from k3.proof.reals import (
    square_nonneg,
)
from k3.proof.sums import (
    every,
)
from k3.proof.theorem import Theorem, Theorems

M = loss.most
words = var("words", fun(POSITION, list_of(loss.WORD)))


def _sum_of(name: str, of: Term) -> Term:
    return total(loss.WORD)(lam([loss.word], loss.BODIES[name]), of)


def _within(of: Term) -> Term:
    return every(loss.WORD)(lam([loss.word], absolute(loss.h) <= M), of)


def _word_loss(moved: bool) -> Term:
    names = ("moved", "label_moved") if moved else ("mass", "label")
    return loss.loss(words(p), *names)


def _slope(label: bool) -> Term:
    slope = _sum_of("slope", words(p)) / _sum_of("mass", words(p))
    return slope - _sum_of("label_change", words(p)) if label else slope


def _gradient(limit: Term, label: bool = True, shared: bool = True) -> Term:
    count = COUNT(kept, xs) if shared else real(1)
    shares = KEPT_SUM(kept, lam([p], _slope(label) / count), xs)
    before, after = (
        MEAN(kept, lam([p], _word_loss(moved)), xs) for moved in (False, True)
    )
    positive = _sum_of("mass", words(p)) > 0
    fit = conj(_within(words(p)), positive)
    fits = ALL_OF(lam([p], implies(kept(p), fit)), xs)
    error = absolute(after - before - shares)
    return forall([kept, words, M, xs], implies(conj(fits, loss.SMALL), error <= limit))


def gradient_is_derivative() -> Term:
    """|loss(z + h) − loss(z) − ⟨G, h⟩| ≤ 2 M² for |h| ≤ M ≤ 1/2 at the kept positions,
    where G has rows (softmax(z) − label) / |S| on the kept positions S and 0 elsewhere:
    the gradient formula of the masked mean is its derivative.
    """
    return _gradient(M * M * 2)


@lemma
def _prove_gradient() -> Thm:
    statement = gradient_is_derivative()
    vs, body = opened(statement)
    hyps = suppose(body.args[0])
    fits, small = kernel.conj_elim(hyps[0], 0), kernel.conj_elim(hyps[0], 1)
    kept_, words_, m_, xs_ = vs
    at = {kept: kept_, words: words_, M: m_, xs: xs_}
    f_, g_, h_ = (
        subst(lam([p], v), at)
        for v in (_word_loss(False), _word_loss(True), _slope(True))
    )
    one = loss.THEOREMS["gradient_is_derivative"].proof()(words_(p), m_)
    premise = suppose(implies(kept_(p), conj(*_fit(words_(p), m_).args)))
    limit = m_ * m_ * 2
    error = absolute(g_(p) - f_(p) - h_(p)) <= limit
    close_ = implies(kept_(p), error)
    step = kernel.ground(close_, [one, premise[0], small])
    each = close([p], premise, step)
    bound = _weaker(each, kept_, xs_, premise[0].concl, close_)
    every_ = kernel.mp(bound, fits)
    square = have(limit >= 0, square_nonneg()(m_))
    rule = MASKED["derivative_of_the_mean"].proof()(kept_, f_, g_, h_, limit, xs_)
    th = kernel.mp(rule, kernel.conj_intro(every_, square))
    return close(vs, hyps, th)


def _fit(words: Term, most: Term) -> Term:
    inside = subst(_within(words), {M: most})
    return conj(inside, _sum_of("mass", words) > 0)


def _weaker(each: Thm, kept: Term, xs_: Term, strong: Term, weak: Term) -> Thm:
    """What every position satisfies implies what it implies at every position."""
    goal = implies(ALL_OF(lam([p], strong), xs), ALL_OF(lam([p], weak), xs))
    return by_induction(xs, goal, by=[each], defs=[ALL_OF])(xs_)


def _mutants() -> Mapping[str, Term]:
    """Wrong variants of gradient_is_derivative."""
    return {
        "softmax without the label": _gradient(M * M * 2, label=False),
        "rows not divided by |S|": _gradient(M * M * 2, shared=False),
        "no slack": _gradient(real(0)),
    }


EIGHTH = Fraction(1, 8)
STEP = {
    "kept": lambda p: True,
    "words": lambda p: (
        ((Fraction(0), EIGHTH), Fraction(1)),
        ((Fraction(0), -EIGHTH), Fraction(0)),
    ),
    "M": EIGHTH,
    "xs": ("Position0", "Position1"),
}
THEOREMS: Theorems = {
    "gradient_is_derivative": Theorem(
        statement=gradient_is_derivative,
        proof=_prove_gradient,
        scope="all masks, sequence lengths, vocabularies and logits, soft labels, "
        "all steps up to 1/2",
        mutants=_mutants,
        hints=dict.fromkeys(_mutants(), STEP),
    ),
}
