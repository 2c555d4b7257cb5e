"""MoonEP: the least of some ranks by a key, and the ranks without it."""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    exact,
    lemma,
    list_induction,
    restate,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.match import prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, fun, list_of, pair_of
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    integer,
    ite,
    lam,
    nil,
    pair,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.fill import SLOTS
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems

RANK = pair_of(INT, SLOTS)  # its number, and the slots of its home experts
first, ranks, r = var("first", RANK), var("ranks", list_of(RANK)), var("r", RANK)
key, f = var("key", fun(RANK, INT)), var("f", fun(RANK, INT))
good = var("good", fun(RANK, BOOL))
prefer = var("prefer", fun(RANK, RANK, BOOL))

SUMMED = recursive(
    "summed",
    [f, ranks],
    INT,
    lambda f: integer(0),
    lambda h, t, rec, f: f(h) + rec(f),
)
ONE = lam([r], integer(1))


def counted(ranks: Term) -> Term:
    """How many ranks there are."""
    return SUMMED(ONE, ranks)


def _before(key: Term, prefer: Term, a: Term, b: Term) -> Term:
    """Is a pulled out rather than b? Equal keys are up to `prefer`."""
    return (key(a) < key(b)) | conj(eq(key(a), key(b)), prefer(a, b))


def _pulled(h: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    key, prefer, _ = given
    least = rec(*given)
    return ite(
        _before(key, prefer, fst(least), h),
        pair(fst(least), cons(h, snd(least))),
        pair(h, cons(fst(least), snd(least))),
    )


PULL = recursive(
    "pull",
    [key, prefer, first, ranks],
    pair_of(RANK, list_of(RANK)),
    lambda key, prefer, first: pair(first, nil(RANK)),
    _pulled,
)
REST = snd(PULL(key, prefer, first, ranks))


def _sums(ranks: Term) -> Term:
    found = PULL(key, prefer, first, ranks)
    return eq(f(fst(found)) + SUMMED(f, snd(found)), f(first) + SUMMED(f, ranks))


def ranks_are_kept() -> Term:
    """Pulling out a rank keeps every rank once: any sum over them is the same."""
    return forall([key, prefer, f, first, ranks], _sums(ranks))


@lemma
def prove_kept() -> Thm:
    """Sums over the pulled ranks."""

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        found = PULL(key, prefer, first, t)
        laws = [
            at_next(PULL, h, t, key, prefer, first),
            at_next(SUMMED, h, t, f),
            at_next(SUMMED, h, snd(found), f),
            at_next(SUMMED, fst(found), snd(found), f),
        ]
        return kernel.ground(_sums(cons(h, t)), [*laws, smaller])

    base = auto(_sums(nil(RANK)), defs=[PULL, SUMMED])
    th = list_induction(ranks, _sums(ranks), base, step)
    return restate(ranks_are_kept(), kernel.generalize([key, prefer, f, first], th))


def _least(ranks: Term, count: Term) -> Term:
    found = fst(PULL(key, prefer, first, ranks))
    return key(found) * count <= key(first) + SUMMED(key, ranks)


def least_is_at_most_average() -> Term:
    """The key of the rank pulled out, times the number of ranks, is at most the sum."""
    return forall([key, prefer, first, ranks], _least(ranks, counted(ranks) + 1))


@lemma
def count_natural() -> Thm:
    """A number of ranks is not negative."""
    return by_induction(ranks, counted(ranks) >= 0, defs=[SUMMED])


@lemma
def prove_least() -> Thm:
    """The least key against the average."""

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        found, whole = PULL(key, prefer, first, t), cons(h, t)
        law = at_next(PULL, h, t, key, prefer, first)
        sums = [at_next(SUMMED, h, t, x) for x in (key, ONE)]
        natural = count_natural()(t)
        pulled = key(fst(PULL(key, prefer, first, whole)))
        goal = _least(whole, counted(whole) + 1)
        before = _before(key, prefer, fst(found), h)
        (yes,) = suppose(before)
        same = kernel.ground(eq(pulled, key(fst(found))), [law, yes])
        product = kernel.congr(goal.args[0], same, _one_more(sums[1]))
        order = kernel.ground(key(fst(found)) <= key(h), [yes])
        there = exact(goal, product, smaller, sums[0], order)
        (no,) = suppose(~before)
        same = kernel.ground(eq(pulled, key(h)), [law, no])
        product = kernel.congr(goal.args[0], same, _one_more(sums[1]))
        order = kernel.ground(key(h) <= key(fst(found)), [no])
        here = exact(goal, product, smaller, sums[0], order, natural, degree=2)
        return kernel.by_cases(before, there, here)

    base = auto(_least(nil(RANK), counted(nil(RANK)) + 1), defs=[PULL, SUMMED])
    phi = _least(ranks, counted(ranks) + 1)
    th = list_induction(ranks, phi, base, step)
    return restate(
        least_is_at_most_average(), kernel.generalize([key, prefer, first], th)
    )


def _one_more(law: Thm) -> Thm:
    """The count of one rank more, plus 1."""
    return kernel.congr(law.concl.args[0] + 1, law, kernel.refl(integer(1)))


def _all_good(ranks: Term) -> Term:
    found = PULL(key, prefer, first, ranks)
    given = conj(good(first), every(RANK)(good, ranks))
    kept = conj(good(fst(found)), every(RANK)(good, snd(found)))
    return implies(given, kept)


@lemma
def all_good() -> Thm:
    """What holds of every rank holds of the one pulled out and of the others."""

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        found, ALL = PULL(key, prefer, first, t), every(RANK)
        laws = [
            at_next(PULL, h, t, key, prefer, first),
            at_next(ALL, h, t, good),
            at_next(ALL, h, snd(found), good),
            at_next(ALL, fst(found), snd(found), good),
        ]
        return kernel.ground(_all_good(cons(h, t)), [*laws, smaller])

    base = auto(_all_good(nil(RANK)), defs=[PULL, every(RANK)])
    th = list_induction(ranks, _all_good(ranks), base, step)
    return prenex(kernel.generalize([key, prefer, good, first], th))


def _kept_mutants() -> Mapping[str, Term]:
    lost = eq(SUMMED(f, REST), SUMMED(f, ranks))
    return {"the first rank pulled out": forall([key, prefer, f, first, ranks], lost)}


def _mutants() -> Mapping[str, Term]:
    more = _least(ranks, counted(ranks) + 2)
    return {"one rank more": forall([key, prefer, first, ranks], more)}


THEOREMS: Theorems = {
    "ranks_are_kept": Theorem(
        statement=ranks_are_kept,
        proof=prove_kept,
        scope="all numbers of ranks, all keys",
        mutants=_kept_mutants,
    ),
    "least_is_at_most_average": Theorem(
        statement=least_is_at_most_average,
        proof=prove_least,
        scope="all numbers of ranks, all keys",
        mutants=_mutants,
    ),
}
