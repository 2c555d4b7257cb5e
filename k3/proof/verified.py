"""Speculative decoding of one token in a context, whatever the models condition on."""

import random
from collections.abc import Mapping
from fractions import Fraction
from itertools import product

from k3.logic import falsify, kernel
from k3.logic.auto import (
    at_next,
    by_induction,
    close,
    exact,
    lemma,
    nat_induction,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, REAL, fun, list_of, named
from k3.logic.syntax import (
    TRUE,
    conj,
    eq,
    forall,
    implies,
    integer,
    ite,
    lam,
    maximum,
    minimum,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.reals import quotient_of
from k3.proof.substitution import agree
from k3.proof.sums import SUM, sigma, sum_add
from k3.proof.theorem import Theorem, Theorems

CONTEXT = named("Context")
LAW = fun(CONTEXT, INT, REAL)
words, drafted, i, x = (var(v, INT) for v in ("words", "drafted", "i", "x"))
p, q, c = var("p", LAW), var("q", LAW), var("c", CONTEXT)
extend = var("extend", fun(CONTEXT, INT, CONTEXT))
xs, a, b = var("xs", list_of(INT)), var("a", REAL), var("b", REAL)
holds, f = var("holds", fun(INT, BOOL)), var("f", fun(INT, REAL))

BELOW = recursive(  # does it hold of every number below n?
    "below",
    [holds, words],
    BOOL,
    lambda holds: TRUE,
    lambda n, rec, holds: conj(rec(holds), holds(n)),
)
KEEP = define(  # the chance that a drafted token is kept, min(1, p / q)
    "keep", [a, b], ite(b <= 0, real(1), minimum(real(1), a / b))
)
REJECTED = define(  # the chance that the drafted token is not kept
    "rejected",
    [words, p, q, c],
    sigma(words, q(c, i) * (real(1) - KEEP(p(c, i), q(c, i))), i),
)
REST = define("rest", [words, p, q, c], sigma(words, maximum(p(c, i) - q(c, i), 0), i))
CORRECTION = define(  # the law of the token that replaces a rejected one
    "correction",
    [words, p, q, c, x],
    ite(
        eq(REST(words, p, q, c), 0),
        real(0),
        maximum(p(c, x) - q(c, x), 0) / REST(words, p, q, c),
    ),
)
MODELS = [words, p, q]
STEP = [*MODELS, c, x]


def both_are_laws() -> Term:
    """Both laws sum to one and are not negative, in every context."""
    sums = conj(eq(sigma(words, p(c, i), i), 1), eq(sigma(words, q(c, i), i), 1))
    return forall(
        [c], conj(sums, BELOW(lam([i], conj(p(c, i) >= 0, q(c, i) >= 0)), words))
    )


def is_token(x: Term) -> Term:
    """Is it a token of the vocabulary?"""
    return conj(x >= 0, x < words)


KEPT = q(c, x) * KEEP(p(c, x), q(c, x))
REPLACED = REJECTED(words, p, q, c) * CORRECTION(words, p, q, c, x)


def _step(emitted: Term) -> Term:
    given = conj(words >= 0, both_are_laws(), is_token(x))
    return forall(STEP, implies(given, eq(emitted, p(c, x))))


def step_is_lossless() -> Term:
    """A token drafted, kept with chance min(1, p/q) and otherwise replaced from the
    normalized residual has the law of the target, also where no token is rejected.
    """
    return _step(KEPT + REPLACED)


@lemma
def _below() -> Thm:
    """What holds below n holds of each number below n."""

    def goal(n: Term) -> Term:
        return forall([i], implies(conj(BELOW(holds, n), i >= 0, i < n), holds(i)))

    def step(n: Term, natural: Thm, smaller: Thm) -> Thm:
        (given,) = suppose(conj(BELOW(holds, n + 1), i >= 0, i < n + 1))
        law = use(at_next(BELOW, n, holds), natural)
        th = kernel.ground(holds(i), [law, given, smaller(i)])
        return close([i], [given], th)

    (none,) = suppose(conj(BELOW(holds, integer(0)), i >= 0, i < 0))
    base = close([i], [none], kernel.ground(holds(i), [none]))
    return kernel.generalize([holds], nat_induction(words, goal(words), base, step))


@lemma
def _term_at_most_sum() -> Thm:
    """A term of a sum of terms that are not negative is at most the sum."""
    (positive,) = suppose(forall([i], f(i) >= 0))
    nonneg = by_induction(words, SUM(f, words) >= 0, by=[positive], defs=[SUM])

    def goal(n: Term) -> Term:
        return forall([i], implies(conj(i >= 0, i < n), f(i) <= SUM(f, n)))

    def step(n: Term, natural: Thm, smaller: Thm) -> Thm:
        (given,) = suppose(conj(i >= 0, i < n + 1))
        law = use(at_next(SUM, n, f), natural)
        before = use(nonneg(n), natural)
        facts = [law, before, smaller(i), positive(i), positive(n), given]
        return close([i], [given], kernel.ground(f(i) <= SUM(f, n + 1), facts))

    (none,) = suppose(conj(i >= 0, i < 0))
    impossible = kernel.ground(f(i) <= SUM(f, integer(0)), [none])
    base = close([i], [none], impossible)
    th = nat_induction(words, goal(words), base, step)
    return close([f], [positive], th)


@lemma
def _kept() -> Thm:
    """q·min(1, p/q) = min(p, q)."""
    (given,) = suppose(conj(a >= 0, b >= 0))
    law = unfold(KEEP, a, b)
    goal = eq(b * KEEP(a, b), minimum(a, b))
    (zero,) = suppose(b <= 0)
    one = kernel.ground(eq(KEEP(a, b), 1), [law, zero])
    yes = exact(goal, kernel.congr(b * KEEP(a, b), kernel.refl(b), one), zero, given)
    (more,) = suppose(~(b <= 0))
    inside = kernel.ground(eq(KEEP(a, b), minimum(real(1), a / b)), [law, more])
    share = kernel.congr(b * KEEP(a, b), kernel.refl(b), inside)
    whole = quotient_of(a, b, more)
    no = exact(goal, share, whole, more, given, degree=2)
    return close([a, b], [given], kernel.by_cases(b <= 0, yes, no))


def _mass(each: Term, other: Term, whole: Term, at: Thm, *, by: tuple[Thm, Thm]) -> Thm:
    """Σ each + Σ other = Σ whole, from each + other = whole inside."""
    inside, n = by
    added = use(sum_add()(words, lam([i], each), lam([i], other)), n)
    same = agree(i, words, n, inside, exact(eq(each + other, whole), at))
    return kernel.trans(kernel.sym(added), same)


@lemma
def prove_step() -> Thm:
    """The law of a verified token."""
    (given,) = suppose(conj(words >= 0, both_are_laws(), is_token(x)))
    natural, models, token = (kernel.conj_elim(given, part) for part in range(3))
    here = models(c)
    signs = kernel.conj_elim(here, 1)
    (inside,) = suppose(conj(i >= 0, i < words))
    rule = _below()(signs.concl.args[0])(words)
    rule = use(rule, natural)
    overlap = minimum(p(c, i), q(c, i))
    positive = use(rule(i), signs, inside)
    kept = use(_kept()(p(c, i), q(c, i)), positive)
    lost = q(c, i) * (real(1) - KEEP(p(c, i), q(c, i)))
    excess = maximum(p(c, i) - q(c, i), 0)
    drafts = _mass(lost, overlap, q(c, i), kept, by=(inside, natural))
    targets = _mass(
        excess, overlap, p(c, i), kernel.refl(overlap), by=(inside, natural)
    )
    laws = [unfold(s, words, p, q, c) for s in (REJECTED, REST)]
    rejected, rest = (law.concl.args[0] for law in laws)
    same = exact(eq(rejected, rest), *laws, drafts, targets, kernel.conj_elim(here, 0))
    mine = use(_kept()(p(c, x), q(c, x)), use(rule(x), signs, token))
    missing = maximum(p(c, x) - q(c, x), 0)
    emitted = _replaced(rest, missing, same, token, laws[1])
    th = exact(eq(KEPT + REPLACED, p(c, x)), mine, emitted)
    return close(STEP, [given], th)


def _replaced(rest: Term, missing: Term, same: Thm, token: Thm, law: Thm) -> Thm:
    """The chance of a replacement is max(p − q, 0)."""
    chance = CORRECTION(words, p, q, c, x)
    correction = unfold(CORRECTION, words, p, q, c, x)
    swap = kernel.congr(REPLACED, same, kernel.refl(chance))
    (zero,) = suppose(eq(rest, 0))
    none = kernel.ground(eq(chance, 0), [correction, zero])
    excess = lam([i], maximum(p(c, i) - q(c, i), 0))
    above = kernel.generalize([i], exact(excess(i) >= 0))
    most = use(_term_at_most_sum()(excess), above)
    natural = kernel.ground(words >= 0, [token])
    most = use(use(most(words), natural)(x), token)
    gone = kernel.congr(rest * chance, kernel.refl(rest), none)
    yes = exact(eq(REPLACED, missing), swap, gone, most, law, zero)
    (some,) = suppose(~eq(rest, 0))
    share = kernel.ground(eq(chance, missing / rest), [correction, some])
    part = kernel.congr(rest * chance, kernel.refl(rest), share)
    whole = quotient_of(missing, rest, some)
    no = exact(eq(REPLACED, missing), swap, part, whole)
    return kernel.by_cases(eq(rest, 0), yes, no)


def _table(*chances: Fraction) -> falsify.Table:
    """A law in every context, turned round by one word from context to context."""
    table = falsify.Table(LAW, random.Random(0), 1)
    size = len(chances)
    for k, word in product(range(falsify.NAMED_SIZE), range(size)):
        table.known[f"Context{k}", word] = chances[(word + k) % size]
    return table


QUARTER, THIRD = Fraction(1, 4), Fraction(1, 3)
AT = {
    "words": 2,
    "p": _table(QUARTER, 1 - QUARTER),
    "q": _table(1 - THIRD, THIRD),
    "x": 1,
}


def _step_mutants() -> Mapping[str, Term]:
    raw = REJECTED(words, p, q, c) * maximum(p(c, x) - q(c, x), 0)
    return {
        "the residual not normalized": _step(KEPT + raw),
        "the target in place of the residual": _step(
            KEPT + REJECTED(words, p, q, c) * p(c, x)
        ),
        "nothing replaced": _step(KEPT),
    }


THEOREMS: Theorems = {
    "step_is_lossless": Theorem(
        statement=step_is_lossless,
        proof=prove_step,
        scope="all vocabularies, all real laws",
        mutants=_step_mutants,
        hints=dict.fromkeys(_step_mutants(), AT),
    ),
}
