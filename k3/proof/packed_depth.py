"""AttnRes: a packed block state is the list block state.

A source is of any type; a sublayer is any function of what is complete and running.
"""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    close,
    exact,
    lemma,
    list_induction,
    nat_induction,
    restate,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, fun, list_of, named, pair_of
from k3.logic.syntax import (
    TRUE,
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
from k3.proof.lists import snoc
from k3.proof.mla import ENTRY
from k3.proof.theorem import Theorem, Theorems

SOURCES, ROWS = list_of(ENTRY), fun(INT, ENTRY)
RUNNING = pair_of(BOOL, ENTRY)  # is there a running sum, and what it is
EVENT = pair_of(named("Sublayer"), BOOL)  # a sublayer, and does it end its layer?
block, size, count, n, i = (var(v, INT) for v in ("block", "size", "count", "n", "i"))
rows, completed, running = (
    var("rows", ROWS),
    var("completed", SOURCES),
    var("running", RUNNING),
)
apply = var("apply", fun(named("Sublayer"), SOURCES, RUNNING, ENTRY))
plus = var("plus", fun(ENTRY, ENTRY, ENTRY))
events, e, v = var("events", list_of(EVENT)), var("e", ENTRY), var("v", ENTRY)
SNOC = snoc(ENTRY)

LISTED = recursive(  # the first n rows as a list
    "listed",
    [rows, n],
    SOURCES,
    lambda rows: nil(ENTRY),
    lambda n, rec, rows: SNOC(rec(rows), rows(n)),
)
WRITTEN = define(  # one more row
    "written", [rows, count, v], lam([i], ite(eq(i, count), v, rows(i)))
)
Step = Callable[[Term, Callable[..., Term], tuple[Term, ...]], Term]


def _added(running: Term, y: Term, plus: Term) -> Term:
    """The running sum takes a sublayer's output."""
    return pair(TRUE, ite(fst(running), plus(snd(running), y), y))


def _absent(running: Term) -> Term:
    """No running sum; the value does not matter."""
    return pair(~TRUE, snd(running))


def _list_step(h: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    apply, plus, block, completed, running, size = given
    now = _added(running, apply(fst(h), completed, running), plus)
    full = SNOC(completed, snd(now))
    same = (apply, plus, block)
    ended = ite(
        size + 1 < block,
        rec(*same, completed, now, size + 1),
        rec(*same, full, _absent(now), integer(0)),
    )
    return ite(snd(h), ended, rec(*same, completed, now, size))


def _row_step(h: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    apply, plus, block, rows, count, running, size = given
    now = _added(running, apply(fst(h), LISTED(rows, count), running), plus)
    full = WRITTEN(rows, count, snd(now))
    same = (apply, plus, block)
    ended = ite(
        size + 1 < block,
        rec(*same, rows, count, now, size + 1),
        rec(*same, full, count + 1, _absent(now), integer(0)),
    )
    return ite(snd(h), ended, rec(*same, rows, count, now, size))


TAIL = pair_of(RUNNING, INT)
OF_LISTS = recursive(
    "depth_of_lists",
    [apply, plus, block, completed, running, size, events],
    pair_of(SOURCES, TAIL),
    lambda *given: pair(given[3], pair(given[4], given[5])),
    _list_step,
)
OF_ROWS = recursive(
    "depth_of_rows",
    [apply, plus, block, rows, count, running, size, events],
    pair_of(pair_of(ROWS, INT), TAIL),
    lambda *given: pair(pair(given[3], given[4]), pair(given[5], given[6])),
    _row_step,
)
MODEL = [apply, plus, block]
EVERY = [*MODEL, rows, count, running, size, events]


def _same(events: Term, start: Term) -> Term:
    packed = OF_ROWS(*MODEL, rows, count, running, size, events)
    listed = OF_LISTS(*MODEL, start, running, size, events)
    kept = LISTED(fst(fst(packed)), snd(fst(packed)))
    return conj(
        snd(fst(packed)) >= 0, eq(kept, fst(listed)), eq(snd(packed), snd(listed))
    )


def packed_equals_lists() -> Term:
    """After any sublayers, packed rows are the list of completed blocks, and the
    running sum and its number of layers are the same, whatever sublayers compute from
    their sources and however long a block is.
    """
    same = _same(events, LISTED(rows, count))
    return forall(EVERY, implies(count >= 0, same))


@lemma
def _rows_stay() -> Thm:
    """Writing a row does not change the rows before it."""

    def goal(n: Term) -> Term:
        same = eq(LISTED(WRITTEN(rows, count, v), n), LISTED(rows, n))
        return implies(n <= count, same)

    def step(n: Term, natural: Thm, smaller: Thm) -> Thm:
        (inside,) = suppose(n + 1 <= count)
        full = WRITTEN(rows, count, v)
        laws = [use(at_next(LISTED, n, r), natural) for r in (full, rows)]
        row = kernel.congr(full(n), unfold(WRITTEN, rows, count, v), kernel.refl(n))
        goal = eq(laws[0].concl.args[0], laws[1].concl.args[0])
        th = kernel.ground(goal, [*laws, row, smaller, inside])
        return kernel.discharge(inside.concl, th)

    base = auto(goal(integer(0)), defs=[LISTED])
    th = nat_induction(n, goal(n), base, step)
    return kernel.generalize([rows, count, v], th)


@lemma
def _one_more() -> Thm:
    """With a row written, the rows are the list with one more entry."""
    (natural,) = suppose(count >= 0)
    full = WRITTEN(rows, count, v)
    law = use(at_next(LISTED, count, full), natural)
    row = kernel.congr(full(count), unfold(WRITTEN, rows, count, v), kernel.refl(count))
    stay = use(_rows_stay()(rows, count, v)(count), natural)
    goal = eq(LISTED(full, count + 1), SNOC(LISTED(rows, count), v))
    return close([rows, count, v], [natural], kernel.ground(goal, [law, row, stay]))


@lemma
def _prove_packed() -> Thm:
    given = [rows, count, running, size]

    def goal(events: Term) -> Term:
        same = _same(events, LISTED(rows, count))
        return forall(given, implies(count >= 0, same))

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        (natural,) = suppose(count >= 0)
        y = apply(fst(h), LISTED(rows, count), running)
        now = _added(running, y, plus)
        full = WRITTEN(rows, count, snd(now))
        written = use(_one_more()(rows, count, snd(now)), natural)
        grown = exact(count + 1 >= 0, natural)
        later = [
            use(smaller(rows, count, now, size), natural),
            use(smaller(rows, count, now, size + 1), natural),
            use(smaller(full, count + 1, _absent(now), integer(0)), grown),
        ]
        laws = [
            at_next(OF_ROWS, h, t, *MODEL, *given),
            at_next(OF_LISTS, h, t, *MODEL, LISTED(rows, count), running, size),
        ]
        whole = _same(cons(h, t), LISTED(rows, count))
        parts = [
            kernel.ground(part, [*laws, *later, written, natural])
            for part in whole.args
        ]
        return close(given, [natural], kernel.conj_intro(*parts))

    base = auto(goal(nil(EVENT)), defs=[OF_ROWS, OF_LISTS])
    th = list_induction(events, goal(events), base, step)
    return restate(packed_equals_lists(), kernel.generalize(MODEL, th))


def _packed_mutants() -> Mapping[str, Term]:
    same = _same(events, nil(ENTRY))
    packed = OF_ROWS(*MODEL, rows, count, running, size, events)
    kept = LISTED(fst(fst(packed)), count)
    listed = OF_LISTS(*MODEL, LISTED(rows, count), running, size, events)
    short = eq(kept, fst(listed))
    return {
        "earlier blocks forgotten": forall(EVERY, implies(count >= 0, same)),
        "the count not advanced": forall(EVERY, implies(count >= 0, short)),
    }


THEOREMS: Theorems = {
    "packed_equals_lists": Theorem(
        statement=packed_equals_lists,
        proof=_prove_packed,
        scope="all block lengths, numbers of sublayers, source types and sublayers",
        mutants=_packed_mutants,
    ),
}
