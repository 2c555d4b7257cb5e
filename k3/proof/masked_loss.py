"""The masked next-token loss: a mean over kept positions, and its derivative."""

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
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import BOOL, REAL, fun, list_of, named
from k3.logic.syntax import (
    absolute,
    conj,
    cons,
    eq,
    forall,
    implies,
    ite,
    lam,
    real,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import append, length, total
from k3.proof.reals import (
    product_pos,
    quotient_of,
)
from k3.proof.sums import (
    every,
)
from k3.proof.theorem import Theorem, Theorems

POSITION = named("Position")
kept, f, g, h = (
    var("kept", fun(POSITION, BOOL)),
    *(var(v, fun(POSITION, REAL)) for v in "fgh"),
)
xs, ys = var("xs", list_of(POSITION)), var("ys", list_of(POSITION))
p = var("p", POSITION)
low, high, slack = (var(v, REAL) for v in ("low", "high", "slack"))
ADD, ALL_OF, JOIN = total(POSITION), every(POSITION), append(POSITION)
COUNT = define(
    "kept_count", [kept, xs], ADD(lam([p], ite(kept(p), real(1), real(0))), xs)
)
KEPT_SUM = define(
    "kept_sum", [kept, f, xs], ADD(lam([p], ite(kept(p), f(p), real(0))), xs)
)
# 0 if nothing is kept
MEAN = define(
    "masked_mean",
    [kept, f, xs],
    ite(eq(COUNT(kept, xs), 0), real(0), KEPT_SUM(kept, f, xs) / COUNT(kept, xs)),
)
LAWS = [ADD, ALL_OF, JOIN]


def masked_contribute_nothing() -> Term:
    """Losses that agree on the kept positions have the same mean, whatever they are
    elsewhere; and a masked position in the middle changes nothing.
    """
    agree = ALL_OF(lam([p], implies(kept(p), eq(f(p), g(p)))), xs)
    same = eq(MEAN(kept, f, xs), MEAN(kept, g, xs))
    more = MEAN(kept, f, JOIN(xs, cons(p, ys)))
    less = eq(more, MEAN(kept, f, JOIN(xs, ys)))
    goal = conj(implies(agree, same), implies(~kept(p), less))
    return forall([kept, f, g, xs, ys, p], goal)


@lemma
def _same_sums() -> Thm:
    """Losses that agree on the kept positions have the same kept sum."""
    agree = ALL_OF(lam([p], implies(kept(p), eq(f(p), g(p)))), xs)
    sums = [ADD(lam([p], ite(kept(p), v(p), real(0))), xs) for v in (f, g)]
    goal = implies(agree, eq(*sums))
    return by_induction(xs, goal, defs=LAWS)


@lemma
def _inserted() -> Thm:
    """A masked position changes neither the sum nor the count."""
    out = []
    hyps = suppose(~kept(p))
    x = var("x", POSITION)
    for value in (f(x), real(1)):
        body = lam([x], ite(kept(x), value, real(0)))
        goal = eq(ADD(body, JOIN(xs, cons(p, ys))), ADD(body, JOIN(xs, ys)))
        out.append(by_induction(xs, goal, by=hyps, defs=LAWS)(xs))
    return close([], hyps, kernel.conj_intro(*out))


@lemma
def _prove_masked() -> Thm:
    agree = suppose(ALL_OF(lam([p], implies(kept(p), eq(f(p), g(p)))), xs))
    sums = kernel.mp(_same_sums()(xs), agree[0])
    laws = [unfold(MEAN, kept, v, xs) for v in (f, g)]
    laws += [unfold(KEPT_SUM, kept, v, xs) for v in (f, g)]
    same = eq(MEAN(kept, f, xs), MEAN(kept, g, xs))
    first = kernel.discharge(agree[0].concl, kernel.ground(same, [sums, *laws]))
    hyps = suppose(~kept(p))
    moved = kernel.mp(_inserted(), hyps[0])
    lists = JOIN(xs, cons(p, ys)), JOIN(xs, ys)
    laws = [unfold(s, kept, f, x) for x in lists for s in (MEAN, KEPT_SUM)]
    laws += [unfold(COUNT, kept, x) for x in lists]
    less = eq(*(MEAN(kept, f, x) for x in lists))
    second = kernel.discharge(hyps[0].concl, kernel.ground(less, [moved, *laws]))
    return kernel.generalize([kept, f, g, xs, ys, p], kernel.conj_intro(first, second))


def all_masked_is_zero() -> Term:
    """With every position masked the loss is defined, and 0."""
    none = ALL_OF(lam([p], ~kept(p)), xs)
    return forall([kept, f, xs], implies(none, eq(MEAN(kept, f, xs), 0)))


@lemma
def _prove_all_masked() -> Thm:
    none = ALL_OF(lam([p], ~kept(p)), xs)
    count = ADD(lam([p], ite(kept(p), real(1), real(0))), xs)
    th = by_induction(xs, implies(none, eq(count, 0)), defs=LAWS)
    hyps = suppose(none)
    at = kernel.mp(th(xs), hyps[0])
    laws = [unfold(MEAN, kept, f, xs), unfold(COUNT, kept, xs)]
    goal = kernel.ground(eq(MEAN(kept, f, xs), 0), [at, *laws])
    return close([kept, f, xs], hyps, goal)


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
def _prove_derivative() -> Thm:
    count = COUNT(kept, xs)
    share = lam([p], h(p) / count)
    statement = derivative_of_the_mean()
    close_ = absolute(g(p) - f(p) - h(p)) <= slack
    hyps = suppose(conj(ALL_OF(lam([p], implies(kept(p), close_)), xs), slack >= 0))
    within, positive = parts(hyps[0])
    change = kernel.mp(kernel.mp(_sums_change()(slack), positive)(xs), within)
    law = unfold(COUNT, kept, xs)
    sums = {v: unfold(KEPT_SUM, kept, v, xs) for v in (f, g, share)}
    means = [unfold(MEAN, kept, v, xs) for v in (f, g)]
    shares = KEPT_SUM(kept, share, xs)
    error = MEAN(kept, g, xs) - MEAN(kept, f, xs) - shares
    facts = kernel.generalize([f], _count_facts()(xs)(f))
    nothing = suppose(eq(count, 0))
    none = facts(share)
    goal = absolute(error) <= slack
    empty = kernel.ground(goal, [none, law, sums[share], *means, positive, *nothing])
    some = suppose(~nothing[0].concl)
    more = kernel.ground(count > 0, [facts(f), law, *some])
    quotients = [quotient_of(KEPT_SUM(kept, v, xs), count, more) for v in (f, g)]
    ratios = [
        kernel.ground(
            eq(MEAN(kept, v, xs), KEPT_SUM(kept, v, xs) / count), [mean, *some]
        )
        for v, mean in zip((f, g), means, strict=True)
    ]
    back = kernel.mp(_shared()(count), more)(xs)
    scaled = [
        kernel.congr(r.concl.args[0] * count, r, kernel.refl(count)) for r in ratios
    ]
    scaled.append(kernel.congr(shares * count, sums[share], kernel.refl(count)))
    scaled.append(kernel.congr(slack * count, kernel.refl(slack), law))
    known = [change, sums[f], sums[g], *quotients, *scaled, back]
    out = []
    for signed in (error, -error):
        (over,) = suppose(signed > slack)
        far = product_pos(signed - slack, count, over, more)
        no = exact(signed <= slack, far, *known)
        yes = exact(signed <= slack, *suppose(~over.concl))
        out.append(kernel.by_cases(over.concl, no, yes))
    full = exact(goal, *out)
    th = kernel.by_cases(nothing[0].concl, empty, full)
    return restate(statement, close([kept, f, g, h, slack, xs], hyps, th))


def _masked_mutants() -> Mapping[str, Term]:
    """Wrong variants of masked_contribute_nothing."""
    more = MEAN(kept, f, JOIN(xs, cons(p, ys)))
    less = eq(more, MEAN(kept, f, JOIN(xs, ys)))
    everything = length(POSITION)(xs)
    other = KEPT_SUM(kept, f, xs) / to_real(everything)
    some = everything >= 1
    return {
        "a kept position": forall([kept, f, xs, ys, p], less),
        "the mean over all positions": forall(
            [kept, f, xs], implies(some, eq(MEAN(kept, f, xs), other))
        ),
    }


def _change_mutants() -> Mapping[str, Term]:
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


def _once() -> dict[str, object]:
    """Two positions whose loss rises by the slack more than by h."""
    return {
        "kept": lambda p: True,
        "f": lambda p: Fraction(0),
        "g": lambda p: Fraction(3),
        "h": lambda p: Fraction(2),
        "slack": Fraction(1),
        "xs": ("Position0", "Position1"),
    }


ANY = "all positions, masks and losses, all lengths"
THEOREMS: Theorems = {
    "masked_contribute_nothing": Theorem(
        statement=masked_contribute_nothing,
        proof=_prove_masked,
        scope=ANY,
        mutants=_masked_mutants,
    ),
    "all_masked_is_zero": Theorem(
        statement=all_masked_is_zero, proof=_prove_all_masked, scope=ANY
    ),
    "derivative_of_the_mean": Theorem(
        statement=derivative_of_the_mean,
        proof=_prove_derivative,
        scope=f"{ANY}, all slacks ≥ 0",
        mutants=_change_mutants,
        hints={
            "half the slack": _once(),
            "rows not divided by |S|": {**_once(), "g": lambda p: Fraction(2)},
        },
    ),
}
