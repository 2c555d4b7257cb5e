"""MoonEP: moving slots of experts from one rank to another, expert by expert."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    lemma,
    list_induction,
    restate,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.match import prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, fun, list_of
from k3.logic.syntax import (
    TRUE,
    conj,
    cons,
    eq,
    forall,
    implies,
    integer,
    ite,
    lam,
    minimum,
    nil,
    var,
)
from k3.logic.terms import Term, open_body
from k3.proof.lists import length
from k3.proof.theorem import Theorem, Theorems

SLOTS = list_of(INT)
slots, need, rank, place, j = (
    var("slots", SLOTS),
    *(var(v, INT) for v in ("need", "rank", "place", "j")),
)
g = var("g", fun(INT, INT, INT))
SIZE = length(INT)

LOAD = recursive(  # all slots of a rank
    "load", [slots], INT, lambda: integer(0), lambda h, t, rec: h + rec()
)
NATURAL = recursive(  # is no number of slots negative?
    "natural", [slots], BOOL, lambda: TRUE, lambda h, t, rec: conj(h >= 0, rec())
)
TAKEN = recursive(  # of each expert as many slots as are still needed
    "taken",
    [need, slots],
    SLOTS,
    lambda need: nil(INT),
    lambda h, t, rec, need: cons(minimum(need, h), rec(need - minimum(need, h))),
)
LEFT = recursive(  # what the rank keeps
    "left",
    [need, slots],
    SLOTS,
    lambda need: nil(INT),
    lambda h, t, rec, need: cons(h - minimum(need, h), rec(need - minimum(need, h))),
)
WEIGHED = recursive(  # slots weighed by home rank and place of their expert
    "weighed",
    [g, rank, place, slots],
    INT,
    lambda *_: integer(0),
    lambda h, t, rec, g, rank, place: g(rank, place) * h + rec(g, rank, place + 1),
)


def slots_are_kept() -> Term:
    """What is moved and what is left make up the slots of every expert: their sum is
    the same for every weight of home rank and place.
    """
    both = [WEIGHED(g, rank, place, f(need, slots)) for f in (TAKEN, LEFT)]
    same = eq(both[0] + both[1], WEIGHED(g, rank, place, slots))
    return forall([g, rank, place, need, slots], same)


@lemma
def prove_kept() -> Thm:
    """Nothing is lost."""
    both = [WEIGHED(g, rank, place, f(need, slots)) for f in (TAKEN, LEFT)]
    same = eq(both[0] + both[1], WEIGHED(g, rank, place, slots))
    defs = [WEIGHED, TAKEN, LEFT]
    th = by_induction(slots, forall([place, need], same), defs=defs)
    return restate(slots_are_kept(), kernel.generalize([g, rank], th))


@lemma
def load_natural() -> Thm:
    """A rank without negative slots has no negative load."""
    goal = implies(NATURAL(slots), LOAD(slots) >= 0)
    return by_induction(slots, goal, defs=[NATURAL, LOAD])


def _filled(given: Term) -> Term:
    taken, left = TAKEN(need, slots), LEFT(need, slots)
    loads = conj(eq(LOAD(taken), need), eq(LOAD(left), LOAD(slots) - need))
    sizes = conj(eq(SIZE(taken), SIZE(slots)), eq(SIZE(left), SIZE(slots)))
    signs = conj(NATURAL(taken), NATURAL(left))
    return implies(given, conj(loads, sizes, signs))


def _possible(slots: Term) -> Term:
    return conj(NATURAL(slots), need >= 0, need <= LOAD(slots))


def exactly_what_is_needed() -> Term:
    """If a rank has as many slots as are needed, exactly these are moved, of no more
    experts than it has, and nothing becomes negative.
    """
    return forall([need, slots], _filled(_possible(slots)))


@lemma
def prove_exactly() -> Thm:
    """The move of slots."""

    def goal(slots: Term) -> Term:
        taken, left = TAKEN(need, slots), LEFT(need, slots)
        loads = conj(eq(LOAD(taken), need), eq(LOAD(left), LOAD(slots) - need))
        sizes = conj(eq(SIZE(taken), SIZE(slots)), eq(SIZE(left), SIZE(slots)))
        signs = conj(NATURAL(taken), NATURAL(left))
        return forall([need], implies(_possible(slots), conj(loads, sizes, signs)))

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        whole = cons(h, t)
        (given,) = suppose(_possible(whole))
        moved = minimum(need, h)
        laws = [at_next(f, h, t) for f in (LOAD, NATURAL, SIZE)]
        moves = [at_next(f, h, t, need) for f in (TAKEN, LEFT)]
        rest, heads = need - moved, (moved, h - moved)
        pieces = [f(rest, t) for f in (TAKEN, LEFT)]
        laws += [
            at_next(f, head, piece)
            for f in (LOAD, NATURAL, SIZE)
            for head, piece in zip(heads, pieces, strict=True)
        ]
        enough = kernel.ground(
            conj(NATURAL(t), rest >= 0, rest <= LOAD(t)),
            [given, *laws[:3], load_natural()(t)],
        )
        later = use(smaller(rest), enough)
        taken, left = TAKEN(need, whole), LEFT(need, whole)
        facts = [given, *laws, *moves, later]
        conclusion = conj(
            conj(eq(LOAD(taken), need), eq(LOAD(left), LOAD(whole) - need)),
            conj(eq(SIZE(taken), SIZE(whole)), eq(SIZE(left), SIZE(whole))),
            conj(NATURAL(taken), NATURAL(left)),
        )
        return close([need], [given], kernel.ground(conclusion, facts))

    base = auto(goal(nil(INT)), defs=[LOAD, NATURAL, SIZE, TAKEN, LEFT])
    th = list_induction(slots, goal(slots), base, step)
    return restate(exactly_what_is_needed(), th)


pick = var("pick", fun(INT, SLOTS, INT, INT))  # need, slots and place to an amount
amount = var("amount", fun(INT, INT))

FITS = recursive(
    "fits",
    [amount, place, slots],
    BOOL,
    lambda *_: TRUE,
    lambda h, t, rec, amount, place: conj(
        amount(place) >= 0, amount(place) <= h, rec(amount, place + 1)
    ),
)
CHOSEN = recursive(
    "chosen",
    [amount, place, slots],
    SLOTS,
    lambda *_: nil(INT),
    lambda h, t, rec, amount, place: cons(amount(place), rec(amount, place + 1)),
)
OTHERS = recursive(
    "others",
    [amount, place, slots],
    SLOTS,
    lambda *_: nil(INT),
    lambda h, t, rec, amount, place: cons(h - amount(place), rec(amount, place + 1)),
)


def _fits(amount: Term) -> Term:
    zero = integer(0)
    exactly = eq(LOAD(CHOSEN(amount, zero, slots)), need)
    return conj(FITS(amount, zero, slots), exactly)


AMOUNT = lam([place], pick(need, slots, place))
GIVEN = define(  # what `pick` says where that is possible, else in order
    "given",
    [pick, need, slots],
    ite(_fits(AMOUNT), CHOSEN(AMOUNT, integer(0), slots), TAKEN(need, slots)),
)
KEPT = define(
    "kept",
    [pick, need, slots],
    ite(_fits(AMOUNT), OTHERS(AMOUNT, integer(0), slots), LEFT(need, slots)),
)


@lemma
def kept_given() -> Thm:
    """Slots are kept by any choice."""
    both = [WEIGHED(g, rank, place, f(amount, j, slots)) for f in (CHOSEN, OTHERS)]
    same = eq(both[0] + both[1], WEIGHED(g, rank, place, slots))
    defs = [WEIGHED, CHOSEN, OTHERS]
    th = by_induction(slots, forall([place, j], same), defs=defs)
    th = prenex(kernel.generalize([g, rank, amount], th))
    picked = th(g, rank, AMOUNT, slots, place, integer(0))
    taken = prove_kept()(g, rank, place, need, slots)
    laws = [unfold(f, pick, need, slots) for f in (GIVEN, KEPT)]
    sides = [WEIGHED(g, rank, place, f(pick, need, slots)) for f in (GIVEN, KEPT)]
    goal = eq(sides[0] + sides[1], WEIGHED(g, rank, place, slots))
    th = kernel.ground(goal, [*laws, picked, taken])
    return kernel.generalize([pick, g, rank, place, need, slots], th)


@lemma
def _choice_fits() -> Thm:
    """Loads, sizes and signs of what a choice takes and leaves."""

    def goal(slots: Term) -> Term:
        taken, left = CHOSEN(amount, j, slots), OTHERS(amount, j, slots)
        loads = eq(LOAD(left), LOAD(slots) - LOAD(taken))
        sizes = conj(eq(SIZE(taken), SIZE(slots)), eq(SIZE(left), SIZE(slots)))
        signs = conj(NATURAL(taken), NATURAL(left))
        return forall([j], implies(FITS(amount, j, slots), conj(loads, sizes, signs)))

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        whole = cons(h, t)
        (given,) = suppose(FITS(amount, j, whole))
        laws = [at_next(f, h, t, amount, j) for f in (FITS, CHOSEN, OTHERS)]
        tails = CHOSEN(amount, j + 1, t), OTHERS(amount, j + 1, t)
        rows = [(h, t), (amount(j), tails[0]), (h - amount(j), tails[1])]
        laws += [at_next(f, *row) for f in (LOAD, SIZE, NATURAL) for row in rows]
        at = open_body(goal(whole).args[0], (j,))
        th = kernel.ground(at.args[1], [*laws, smaller(j + 1), given])
        return close([j], [given], th)

    base = auto(goal(nil(INT)), defs=[FITS, CHOSEN, OTHERS, LOAD, SIZE, NATURAL])
    th = list_induction(slots, goal(slots), base, step)
    return prenex(kernel.generalize([amount], th))


@lemma
def prove_given() -> Thm:
    """Whatever is picked, exactly what is needed is given."""
    (given,) = suppose(_possible(slots))
    taken, left = GIVEN(pick, need, slots), KEPT(pick, need, slots)
    loads = conj(eq(LOAD(taken), need), eq(LOAD(left), LOAD(slots) - need))
    sizes = conj(eq(SIZE(taken), SIZE(slots)), eq(SIZE(left), SIZE(slots)))
    signs = conj(NATURAL(taken), NATURAL(left))
    facts = [unfold(f, pick, need, slots) for f in (GIVEN, KEPT)]
    facts += [use(prove_exactly()(need, slots), given)]
    facts += [_choice_fits()(AMOUNT, slots, integer(0))]
    th = kernel.ground(conj(loads, sizes, signs), [*facts, given])
    return close([pick, need, slots], [given], th)


def _kept_mutants() -> Mapping[str, Term]:
    moved = WEIGHED(g, rank, place + 1, TAKEN(need, slots))
    left = WEIGHED(g, rank, place, LEFT(need, slots))
    same = eq(moved + left, WEIGHED(g, rank, place, slots))
    return {"moved to the next expert": forall([g, rank, place, need, slots], same)}


def _mutants() -> Mapping[str, Term]:
    free = conj(NATURAL(slots), need >= 0)
    return {"more needed than there is": forall([need, slots], _filled(free))}


THEOREMS: Theorems = {
    "slots_are_kept": Theorem(
        statement=slots_are_kept,
        proof=prove_kept,
        scope="all numbers of experts, slots and needs",
        mutants=_kept_mutants,
    ),
    "exactly_what_is_needed": Theorem(
        statement=exactly_what_is_needed,
        proof=prove_exactly,
        scope="all numbers of experts and slots",
        mutants=_mutants,
    ),
}
