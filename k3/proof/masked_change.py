"""How the masked mean changes with its losses: proof for `masked_loss`."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    exact,
    lemma,
    parts,
    restate,
    suppose,
    unfold,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    implies,
    ite,
    lam,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.masked_mean import (
    ADD,
    ALL_OF,
    COUNT,
    KEPT_SUM,
    LAWS,
    MEAN,
    f,
    g,
    h,
    kept,
    p,
    slack,
    xs,
)
from k3.proof.reals import (
    product_pos,
    quotient_of,
)


def _change(of_mean: Term) -> Term:
    """The change of the mean against the kept sum of h / count."""
    shares = KEPT_SUM(kept, lam([p], h(p) / COUNT(kept, xs)), xs)
    error = absolute(MEAN(kept, g, xs) - MEAN(kept, f, xs) - shares)
    close_ = absolute(g(p) - f(p) - h(p)) <= slack
    given = conj(ALL_OF(lam([p], implies(kept(p), close_)), xs), slack >= 0)
    return forall([kept, f, g, h, slack, xs], implies(given, error <= of_mean))


def derivative_of_the_mean() -> Term:
    """If at every kept position the loss changes by h up to the slack, the masked mean
    changes by the sum of h / |S| over the kept positions S, up to the same slack: the
    rows of its gradient are those of the losses over |S|, and 0 where masked.
    """
    return _change(slack)


def _kept(value: Term) -> Term:
    return ADD(lam([p], ite(kept(p), value, real(0))), xs)


@lemma
def _sums_change() -> Thm:
    """The kept sums change by the sum of h, up to slack times the count."""
    error = _kept(g(p)) - _kept(f(p)) - _kept(h(p))
    most = slack * _kept(real(1))
    close_ = absolute(g(p) - f(p) - h(p)) <= slack
    given = ALL_OF(lam([p], implies(kept(p), close_)), xs)
    goal = implies(given, conj(error <= most, -most <= error))
    hyps = suppose(slack >= 0)
    return close([slack], hyps, by_induction(xs, goal, by=hyps, defs=LAWS))


@lemma
def _count_facts() -> Thm:
    """The count is ≥ 0, and with count 0 every kept sum is 0."""
    count = _kept(real(1))
    zero = implies(eq(count, 0), eq(_kept(f(p)), 0))
    nonneg = by_induction(xs, count >= 0, defs=LAWS)
    goal = forall([f], conj(count >= 0, zero))
    return by_induction(xs, goal, by=[nonneg], defs=LAWS)


@lemma
def _shared() -> Thm:
    """Kept shares h / c sum to the kept sum of h over c."""
    c = var("c", REAL)
    hyps = suppose(c > 0)
    whole = kernel.generalize([p], quotient_of(h(p), c, *hyps))
    goal = eq(_kept(h(p) / c) * c, _kept(h(p)))
    return close([c], hyps, by_induction(xs, goal, by=[whole], defs=LAWS))


@lemma
def prove_derivative() -> Thm:
    """The mean changes by the kept sum of h / |S|, up to the slack."""
    close_ = absolute(g(p) - f(p) - h(p)) <= slack
    hyps = suppose(conj(ALL_OF(lam([p], implies(kept(p), close_)), xs), slack >= 0))
    within, positive = parts(hyps[0])
    change = kernel.mp(kernel.mp(_sums_change()(slack), positive)(xs), within)
    (nothing,) = suppose(eq(COUNTED, 0))
    th = kernel.by_cases(nothing.concl, _empty(nothing, positive), _full(change))
    return restate(
        derivative_of_the_mean(), close([kept, f, g, h, slack, xs], hyps, th)
    )


COUNTED = COUNT(kept, xs)
SHARE = lam([p], h(p) / COUNTED)
SHARES = KEPT_SUM(kept, SHARE, xs)
ERROR = MEAN(kept, g, xs) - MEAN(kept, f, xs) - SHARES


def _means() -> list[Thm]:
    return [unfold(MEAN, kept, v, xs) for v in (f, g)]


def _empty(nothing: Thm, positive: Thm) -> Thm:
    """With no position kept both means and the shares are 0."""
    none, law = _count_facts()(xs)(SHARE), unfold(COUNT, kept, xs)
    shares = unfold(KEPT_SUM, kept, SHARE, xs)
    by = [none, law, shares, *_means(), positive, nothing]
    return kernel.ground(absolute(ERROR) <= slack, by)


def _full(change: Thm) -> Thm:
    """Otherwise the change of the kept sums is divided by the count."""
    (some,) = suppose(~eq(COUNTED, 0))
    by = [_count_facts()(xs)(f), unfold(COUNT, kept, xs), some]
    more = kernel.ground(COUNTED > 0, by)
    known = [change, *_scaled(more, some)]
    out = []
    for signed in (ERROR, -ERROR):
        (over,) = suppose(signed > slack)
        far = product_pos(signed - slack, COUNTED, over, more)
        no = exact(signed <= slack, far, *known)
        yes = exact(signed <= slack, *suppose(~over.concl))
        out.append(kernel.by_cases(over.concl, no, yes))
    return exact(absolute(ERROR) <= slack, *out)


def _scaled(more: Thm, some: Thm) -> list[Thm]:
    """What the means, the shares and the slack are times the count."""
    law, one = unfold(COUNT, kept, xs), kernel.refl(COUNTED)
    sums = {v: unfold(KEPT_SUM, kept, v, xs) for v in (f, g, SHARE)}
    known = [sums[f], sums[g], kernel.mp(_shared()(COUNTED), more)(xs)]
    for v, mean in zip((f, g), _means(), strict=True):
        whole = KEPT_SUM(kept, v, xs)
        ratio = kernel.ground(eq(MEAN(kept, v, xs), whole / COUNTED), [mean, some])
        known.append(quotient_of(whole, COUNTED, more))
        known.append(kernel.congr(MEAN(kept, v, xs) * COUNTED, ratio, one))
    known.append(kernel.congr(SHARES * COUNTED, sums[SHARE], one))
    known.append(kernel.congr(slack * COUNTED, kernel.refl(slack), law))
    return known


def change_mutants() -> Mapping[str, Term]:
    """Wrong variants of derivative_of_the_mean."""
    whole = KEPT_SUM(kept, h, xs)
    error = absolute(MEAN(kept, g, xs) - MEAN(kept, f, xs) - whole)
    near = ALL_OF(lam([p], implies(kept(p), absolute(g(p) - f(p) - h(p)) <= slack)), xs)
    return {
        "half the slack": _change(slack / 2),
        "rows not divided by |S|": forall(
            [kept, f, g, h, slack, xs],
            implies(conj(near, slack >= 0), error <= slack),
        ),
    }


def once() -> dict[str, object]:
    """Two positions whose loss rises by the slack more than by h."""
    return {
        "kept": lambda p: True,
        "f": lambda p: Fraction(0),
        "g": lambda p: Fraction(3),
        "h": lambda p: Fraction(2),
        "slack": Fraction(1),
        "xs": ("Position0", "Position1"),
    }
