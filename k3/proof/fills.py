"""MoonEP: one fill of the planner, and the plan as a recursion.

Repeat: the least loaded waiting rank is filled up to the average by the most loaded
one, and waits no more. Which of equally loaded ranks goes first is up to `prefer`, and
which slots a source gives is up to `pick`; where that is impossible it gives its
experts in order. So a rank is filled at most once, from one source, and only by experts
whose home is the source.
"""

from collections.abc import Callable

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    auto,
    by_induction,
    close,
    exact,
    lemma,
    list_induction,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.match import prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, fun, list_of, pair_of
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    fst,
    implies,
    integer,
    lam,
    nil,
    pair,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.fill import (
    GIVEN,
    KEPT,
    LOAD,
    NATURAL,
    SIZE,
    load_natural,
    pick,
    prove_given,
)
from k3.proof.pull import (
    ONE,
    PULL,
    RANK,
    SUMMED,
    all_good,
    count_natural,
    counted,
    f,
    first,
    prefer,
    prove_kept,
    prove_least,
    r,
    ranks,
)
from k3.proof.sums import every

DONE = pair_of(RANK, RANK)  # what a rank keeps of its own; a source, what it gave
average, fills, experts = (var(v, INT) for v in ("average", "fills", "experts"))
done, x = var("done", list_of(DONE)), var("x", DONE)
OF_RANK = lam([r], LOAD(snd(r)))
MINUS = lam([r], integer(0) - LOAD(snd(r)))

TOP = recursive(  # the most loaded rank of some, and the others
    "top",
    [prefer, ranks],
    pair_of(RANK, list_of(RANK)),
    lambda prefer: pair(pair(integer(0), nil(INT)), nil(RANK)),
    lambda h, t, rec, prefer: PULL(MINUS, prefer, h, t),
)


def pieces(
    average: Term, first: Term, ranks: Term, prefer: Term = prefer
) -> tuple[Term, ...]:
    """Receiver, source, the others, and how many slots are needed."""
    pulled = PULL(OF_RANK, prefer, first, ranks)
    top = TOP(prefer, snd(pulled))
    return fst(pulled), fst(top), snd(top), average - LOAD(snd(fst(pulled)))


def _fill(n: Term, rec: Callable[..., Term], *given: Term) -> Term:
    prefer, pick, average, first, ranks = given
    receiver, source, others, need = pieces(average, first, ranks, prefer)
    moved = pair(fst(source), GIVEN(pick, need, snd(source)))
    kept = pair(fst(source), KEPT(pick, need, snd(source)))
    return cons(pair(receiver, moved), rec(prefer, pick, average, kept, others))


PLAN = recursive(  # after `fills` fills, the last rank receives nothing
    "plan",
    [prefer, pick, average, first, ranks, fills],
    list_of(DONE),
    lambda prefer, pick, average, first, ranks: cons(
        pair(first, pair(fst(first), nil(INT))), nil(DONE)
    ),
    _fill,
)


def is_good(r: Term) -> Term:
    """No negative slots, and at most so many home experts."""
    return conj(NATURAL(snd(r)), SIZE(snd(r)) <= experts)


def met(x: Term, most: Term) -> Term:
    """Exactly the average is computed, and few experts are fetched."""
    exactly = eq(LOAD(snd(fst(x))) + LOAD(snd(snd(x))), average)
    natural = conj(NATURAL(snd(fst(x))), NATURAL(snd(snd(x))))
    return conj(exactly, SIZE(snd(snd(x))) <= most, natural)


d, done = var("d", fun(DONE, INT)), var("done", list_of(DONE))
TALLY = recursive(  # a sum over the work of all ranks
    "tally",
    [d, done],
    INT,
    lambda d: integer(0),
    lambda h, t, rec, d: d(h) + rec(d),
)
CHOICE = [prefer, pick]
GOOD = lam([r], is_good(r))
ALL = every(RANK)


def state(first: Term, ranks: Term, fills: Term) -> Term:
    """The ranks that wait: good ones, with the average as their mean."""
    mean = eq(LOAD(snd(first)) + SUMMED(OF_RANK, ranks), average * (fills + 1))
    good = conj(is_good(first), ALL(GOOD, ranks))
    return conj(good, mean, eq(counted(ranks), fills), experts >= 0)


@lemma
def _summed_minus() -> Thm:
    """The sum of the negated loads."""
    goal = eq(SUMMED(MINUS, ranks), integer(0) - SUMMED(OF_RANK, ranks))
    return by_induction(ranks, goal, defs=[SUMMED])


def _top_sums(ranks: Term) -> Term:
    top = TOP(prefer, ranks)
    kept = eq(f(fst(top)) + SUMMED(f, snd(top)), SUMMED(f, ranks))
    return implies(counted(ranks) >= 1, kept)


@lemma
def top_keeps() -> Thm:
    """Sums over the most loaded rank and the others."""

    def step(h: Term, t: Term, _: Thm) -> Thm:
        laws = [
            at_next(TOP, h, t, prefer),
            at_next(SUMMED, h, t, f),
            prove_kept()(MINUS, prefer, f, h, t),
        ]
        return kernel.ground(_top_sums(cons(h, t)), laws)

    base = kernel.ground(_top_sums(nil(RANK)), [at_zero(SUMMED, ONE)])
    th = list_induction(ranks, _top_sums(ranks), base, step)
    return prenex(kernel.generalize([prefer, f], th))


@lemma
def _top_is_most() -> Thm:
    """The most loaded rank, times their number, is at least all loads; and it and the
    others stay good.
    """

    def goal(ranks: Term) -> Term:
        top = TOP(prefer, ranks)
        load = LOAD(snd(fst(top)))
        most = SUMMED(OF_RANK, ranks) <= load * counted(ranks)
        good = conj(is_good(fst(top)), ALL(GOOD, snd(top)))
        given = conj(counted(ranks) >= 1, ALL(GOOD, ranks))
        return implies(given, conj(most, good))

    def step(h: Term, t: Term, _: Thm) -> Thm:
        whole = cons(h, t)
        (given,) = suppose(conj(counted(whole) >= 1, ALL(GOOD, whole)))
        law = at_next(TOP, h, t, prefer)
        top, pulled = TOP(prefer, whole), PULL(MINUS, prefer, h, t)
        least = prove_least()(MINUS, prefer, h, t)
        sums = [at_next(SUMMED, h, t, y) for y in (OF_RANK, ONE)]
        load = LOAD(snd(fst(top)))
        same = kernel.ground(eq(load, LOAD(snd(fst(pulled)))), [law])
        product = kernel.congr(load * counted(whole), same, sums[1])
        most = SUMMED(OF_RANK, whole) <= load * counted(whole)
        first_part = exact(most, product, least, sums[0], _summed_minus()(t))
        alike = at_next(ALL, h, t, GOOD)
        kept = all_good()(MINUS, prefer, GOOD, h, t)
        good = conj(is_good(fst(top)), ALL(GOOD, snd(top)))
        second = kernel.ground(good, [law, alike, kept, given])
        both = kernel.conj_intro(first_part, second)
        return kernel.discharge(given.concl, both)

    base = kernel.ground(goal(nil(RANK)), [at_zero(SUMMED, ONE)])
    th = list_induction(ranks, goal(ranks), base, step)
    return prenex(kernel.generalize([prefer, experts], th))


@lemma
def one_fill() -> Thm:
    """One fill: the receiver is finished, and the ranks that wait are good again."""
    (natural,) = suppose(fills >= 0)
    (given,) = suppose(state(first, ranks, fills + 1))
    receiver, source, others, need = pieces(average, first, ranks)
    rest = snd(PULL(OF_RANK, prefer, first, ranks))
    counts, loads = (
        prove_kept()(OF_RANK, prefer, y, first, ranks) for y in (ONE, OF_RANK)
    )
    good = kernel.ground(
        conj(is_good(receiver), ALL(GOOD, rest)),
        [all_good()(OF_RANK, prefer, GOOD, first, ranks), given],
    )
    low = LOAD(snd(receiver))
    least = prove_least()(OF_RANK, prefer, first, ranks)
    number = kernel.ground(eq(counted(ranks) + 1, fills + 2), [given])
    product = kernel.congr(low * (counted(ranks) + 1), kernel.refl(low), number)
    below = exact(low <= average, least, product, given, natural, degree=2)
    size = kernel.ground(eq(counted(rest), fills + 1), [counts, given])
    enough = kernel.ground(counted(rest) >= 1, [size, natural])
    top = use(_top_is_most()(prefer, experts, rest), enough, good)
    high = LOAD(snd(source))
    product = kernel.congr(high * counted(rest), kernel.refl(high), size)
    above = exact(high >= average, top, product, loads, given, below, natural, degree=2)
    signs = use(load_natural()(snd(receiver)), good)
    possible = kernel.ground(
        conj(NATURAL(snd(source)), need >= 0, need <= high), [top, below, above, signs]
    )
    moved = use(prove_given()(pick, need, snd(source)), possible)
    done = pair(receiver, pair(fst(source), GIVEN(pick, need, snd(source))))
    finished = kernel.ground(met(done, experts), [moved, good, top])
    kept = pair(fst(source), KEPT(pick, need, snd(source)))
    sums = [use(top_keeps()(prefer, y, rest), enough) for y in (ONE, OF_RANK)]
    goal = eq(LOAD(snd(kept)) + SUMMED(OF_RANK, others), average * (fills + 1))
    mean = exact(goal, moved, loads, sums[1], given)
    after = kernel.ground(
        state(kept, others, fills), [moved, top, mean, *sums, size, given]
    )
    names = [*CHOICE, fills, average, experts, first, ranks]
    return close(names, [natural, given], kernel.conj_intro(finished, after))


def one_more() -> tuple[Term, Term, Term]:
    """After one fill: the finished work, what the source keeps, the other ranks."""
    receiver, source, others, need = pieces(average, first, ranks)
    kept = pair(fst(source), KEPT(pick, need, snd(source)))
    return (
        pair(receiver, pair(fst(source), GIVEN(pick, need, snd(source)))),
        kept,
        others,
    )


@lemma
def no_sum() -> Thm:
    """A sum over no ranks is zero."""

    def goal(ranks: Term) -> Term:
        return implies(counted(ranks) <= 0, eq(SUMMED(f, ranks), 0))

    def step(h: Term, t: Term, _: Thm) -> Thm:
        law, natural = at_next(SUMMED, h, t, ONE), count_natural()(t)
        return kernel.ground(goal(cons(h, t)), [law, natural])

    base = auto(goal(nil(RANK)), defs=[SUMMED])
    th = list_induction(ranks, goal(ranks), base, step)
    return prenex(kernel.generalize([f], th))
