"""MoonEP: a planner that meets the bounds of expert parallelism for all loads."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    close,
    exact,
    lemma,
    nat_induction,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, fun
from k3.logic.syntax import (
    conj,
    eq,
    forall,
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
from k3.proof.fill import LOAD, NATURAL, SIZE, WEIGHED, g, kept_given, pick
from k3.proof.fills import (
    ALL,
    CHOICE,
    DONE,
    GOOD,
    OF_RANK,
    PLAN,
    TALLY,
    average,
    experts,
    fills,
    is_good,
    met,
    no_sum,
    one_fill,
    one_more,
    pieces,
    state,
    top_keeps,
    x,
)
from k3.proof.pull import (
    ONE,
    PULL,
    SUMMED,
    count_natural,
    counted,
    first,
    prefer,
    prove_kept,
    r,
    ranks,
)
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems

MEAN = eq(LOAD(snd(first)) + SUMMED(OF_RANK, ranks), average * (counted(ranks) + 1))
GIVEN = conj(is_good(first), ALL(GOOD, ranks), MEAN, experts >= 0)
EVERY = [*CHOICE, average, experts, first, ranks]


def _planned(most: Term, fills: Term, given: Term = GIVEN) -> Term:
    plan = PLAN(*CHOICE, average, first, ranks, fills)
    return forall(EVERY, implies(given, every(DONE)(lam([x], met(x, most)), plan)))


def bounds_are_met() -> Term:
    """For all loads with a whole average, every rank computes exactly the average (S·K
    slots), fetches at most as many experts as a rank holds (E/R), all of one source,
    and no number of slots is negative; whichever of equally loaded ranks goes first,
    and whichever of its slots a source gives.
    """
    return _planned(experts, counted(ranks))


def _bounds_at_zero(test: Term, goal: Term) -> Thm:
    """Without fills to come the last rank computes what it holds."""
    zero = integer(0)
    (given,) = suppose(state(first, ranks, zero))
    last = pair(first, pair(fst(first), nil(INT)))
    facts = [
        at_zero(PLAN, *CHOICE, average, first, ranks),
        *(at_zero(f) for f in (LOAD, NATURAL, SIZE)),
        at_next(every(DONE), last, nil(DONE), test),
        at_zero(every(DONE), test),
        no_sum()(OF_RANK, ranks),
    ]
    base = kernel.ground(goal, [*facts, given])
    return close([first, ranks], [given], base)


@lemma
def _prove_bounds() -> Thm:
    test = lam([x], met(x, experts))

    def all_met(first: Term, ranks: Term, fills: Term) -> Term:
        return every(DONE)(test, PLAN(*CHOICE, average, first, ranks, fills))

    def goal(fills: Term) -> Term:
        given = state(first, ranks, fills)
        return forall([first, ranks], implies(given, all_met(first, ranks, fills)))

    def step(fills: Term, natural: Thm, smaller: Thm) -> Thm:
        (given,) = suppose(state(first, ranks, fills + 1))
        one = use(
            one_fill()(*CHOICE, fills, average, experts, first, ranks), natural, given
        )
        done, kept, others = one_more()
        later = kernel.mp(smaller(kept, others), kernel.conj_elim(one, 1))
        law = use(at_next(PLAN, fills, *CHOICE, average, first, ranks), natural)
        both = at_next(
            every(DONE), done, PLAN(*CHOICE, average, kept, others, fills), test
        )
        planned = every(DONE)(test, law.concl.args[0])
        whole = kernel.congr(planned, kernel.refl(test), law)
        finished = kernel.conj_intro(kernel.conj_elim(one, 0), later)
        th = kernel.eq_mp(kernel.sym(both), finished)
        th = kernel.eq_mp(kernel.sym(whole), th)
        return close([first, ranks], [given], th)

    base = _bounds_at_zero(test, all_met(first, ranks, integer(0)))
    th = kernel.generalize(
        [*CHOICE, average, experts], nat_induction(fills, goal(fills), base, step)
    )
    (given,) = suppose(GIVEN)
    number = counted(ranks)
    th = use(th(*CHOICE, average, experts)(number), count_natural()(ranks))
    th = th(first, ranks)
    ready = kernel.ground(state(first, ranks, number), [given])
    return close(EVERY, [given], kernel.mp(th, ready))


def _tallied(each: Term, of_rank: Term, fills: Term) -> Term:
    """The sum over the plan against the sum over the ranks."""
    plan = PLAN(*CHOICE, average, first, ranks, fills)
    return eq(TALLY(each, plan), of_rank(first) + SUMMED(of_rank, ranks))


W_RANK = lam([r], WEIGHED(g, fst(r), integer(0), snd(r)))
W_DONE = lam([x], W_RANK(fst(x)) + W_RANK(snd(x)))
w = var("w", fun(INT, INT))
N_RANK, N_DONE = lam([r], w(fst(r))), lam([x], w(fst(fst(x))))


def every_slot_is_computed() -> Term:
    """Every slot of every expert is computed by some rank, and once: over all ranks the
    plan has the same sum for every weight of home rank and place, whatever the loads.
    """
    same = _tallied(W_DONE, W_RANK, counted(ranks))
    return forall([g, *CHOICE, average, first, ranks], same)


def every_rank_is_planned_once() -> Term:
    """Every rank is in the plan, and once: sums over the numbers of ranks are kept."""
    same = _tallied(N_DONE, N_RANK, counted(ranks))
    return forall([w, *CHOICE, average, first, ranks], same)


def _conserved_at_zero(each: Term, of_rank: Term) -> Thm:
    """Without fills to come the plan is the last rank."""
    zero = integer(0)
    (given,) = suppose(eq(counted(ranks), zero))
    law = at_zero(PLAN, *CHOICE, average, first, ranks)
    last = pair(first, pair(fst(first), nil(INT)))
    whole = kernel.congr(TALLY(each, law.concl.args[0]), kernel.refl(each), law)
    ends = [
        at_next(TALLY, last, nil(DONE), each),
        at_zero(TALLY, each),
        at_zero(WEIGHED, g, fst(first), zero),
    ]
    empty = kernel.ground(counted(ranks) <= 0, [given])
    rest = use(no_sum()(of_rank, ranks), empty)
    return close(
        [first, ranks],
        [given],
        exact(_tallied(each, of_rank, zero), whole, *ends, rest),
    )


def _conserved(each: Term, of_rank: Term) -> Thm:
    """By induction over the fills: one fill keeps the sum of its two ranks."""

    def goal(fills: Term) -> Term:
        given = eq(counted(ranks), fills)
        same = _tallied(each, of_rank, fills)
        return forall([first, ranks], implies(given, same))

    def step(fills: Term, natural: Thm, smaller: Thm) -> Thm:
        (given,) = suppose(eq(counted(ranks), fills + 1))
        _, source, _, need = pieces(average, first, ranks)
        done, kept, others = one_more()
        rest = snd(PULL(OF_RANK, prefer, first, ranks))
        pulls = [prove_kept()(OF_RANK, prefer, y, first, ranks) for y in (ONE, of_rank)]
        enough = kernel.ground(counted(rest) >= 1, [pulls[0], given, natural])
        tops = [use(top_keeps()(prefer, y, rest), enough) for y in (ONE, of_rank)]
        one = kernel.ground(eq(counted(others), fills), [pulls[0], tops[0], given])
        later = use(smaller(kept, others), one)
        law = use(at_next(PLAN, fills, *CHOICE, average, first, ranks), natural)
        whole = kernel.congr(TALLY(each, law.concl.args[0]), kernel.refl(each), law)
        added = at_next(TALLY, done, PLAN(*CHOICE, average, kept, others, fills), each)
        moved = kept_given()(pick, g, fst(source), integer(0), need, snd(source))
        same = _tallied(each, of_rank, fills + 1)
        th = exact(same, whole, added, later, pulls[1], tops[1], moved)
        return close([first, ranks], [given], th)

    base = _conserved_at_zero(each, of_rank)
    th = use(
        nat_induction(fills, goal(fills), base, step)(counted(ranks)),
        count_natural()(ranks),
    )
    return kernel.mp(th(first, ranks), kernel.refl(counted(ranks)))


@lemma
def _prove_slots() -> Thm:
    th = _conserved(W_DONE, W_RANK)
    return kernel.generalize([g, *CHOICE, average, first, ranks], th)


@lemma
def _prove_ranks() -> Thm:
    th = _conserved(N_DONE, N_RANK)
    return kernel.generalize([w, *CHOICE, average, first, ranks], th)


FREE = conj(is_good(first), ALL(GOOD, ranks), experts >= 0)


def _mutants() -> Mapping[str, Term]:
    return {
        "one expert fewer fetched": _planned(experts - 1, counted(ranks)),
        "one fill fewer": _planned(experts, counted(ranks) - 1),
        "loads without a mean": _planned(experts, counted(ranks), FREE),
    }


def _slot_mutants() -> Mapping[str, Term]:
    same = _tallied(lam([x], W_RANK(fst(x))), W_RANK, counted(ranks))
    return {
        "what was moved not computed": forall([g, *CHOICE, average, first, ranks], same)
    }


def _rank_mutants() -> Mapping[str, Term]:
    short = _tallied(N_DONE, N_RANK, counted(ranks) - 1)
    sources = _tallied(lam([x], w(fst(snd(x)))), N_RANK, counted(ranks))
    return {
        "one fill fewer": forall([w, *CHOICE, average, first, ranks], short),
        "every rank a source once": forall(
            [w, *CHOICE, average, first, ranks], sources
        ),
    }


UNEVEN = {
    "average": 2,
    "experts": 2,
    "first": (0, (3, 3)),
    "ranks": ((1, (0, 0)), (2, (0, 0))),
}
HINTS = {
    "one expert fewer fetched": {**UNEVEN, "average": 3, "ranks": ((1, (0, 0)),)},
    "one fill fewer": UNEVEN,
    "loads without a mean": {**UNEVEN, "average": 3},
}

THEOREMS: Theorems = {
    "bounds_are_met": Theorem(
        statement=bounds_are_met,
        proof=_prove_bounds,
        scope="all numbers of ranks and experts, all loads with a whole average, all "
        "orders of equal ranks, all choices of slots within a source",
        mutants=_mutants,
        hints=HINTS,
    ),
    "every_slot_is_computed": Theorem(
        statement=every_slot_is_computed,
        proof=_prove_slots,
        scope="all numbers of ranks and experts, all loads",
        mutants=_slot_mutants,
    ),
    "every_rank_is_planned_once": Theorem(
        statement=every_rank_is_planned_once,
        proof=_prove_ranks,
        scope="all numbers of ranks and experts, all loads",
        mutants=_rank_mutants,
    ),
}
