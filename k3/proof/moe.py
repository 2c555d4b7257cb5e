"""The router: executable top-k with ties to the lower index, weights, offsets."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    have,
    lemma,
    list_induction,
    restate,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, REAL, list_of, pair_of
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
    nil,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import length
from k3.proof.theorem import Theorem, Theorems

EXPERT = pair_of(REAL, INT)  # score, index
LIST = list_of(EXPERT)
a, b = var("a", EXPERT), var("b", EXPERT)
experts, others = var("experts", LIST), var("others", LIST)
k = var("k", INT)


def better(a: Term, b: Term) -> Term:
    """A higher score, or the same score and no higher index."""
    return (fst(a) > fst(b)) | conj(eq(fst(a), fst(b)), snd(a) <= snd(b))


INSERT = recursive(
    "insert",
    [a, experts],
    LIST,
    lambda a: cons(a, nil(EXPERT)),
    lambda h, t, rec, a: ite(better(a, h), cons(a, cons(h, t)), cons(h, rec(a))),
)
RANK = recursive(
    "rank", [experts], LIST, lambda: nil(EXPERT), lambda h, t, rec: INSERT(h, rec())
)
LEADS = recursive(  # is a better than every one?
    "leads",
    [a, experts],
    BOOL,
    lambda a: TRUE,
    lambda h, t, rec, a: conj(better(a, h), rec(a)),
)
RANKED = recursive(
    "ranked",
    [experts],
    BOOL,
    lambda: TRUE,
    lambda h, t, rec: conj(LEADS(h, t), rec()),
)
COUNT = recursive(
    "count",
    [a, experts],
    INT,
    lambda a: integer(0),
    lambda h, t, rec, a: rec(a) + ite(eq(h, a), integer(1), integer(0)),
)
TAKE = recursive(
    "take",
    [k, experts],
    LIST,
    lambda k: nil(EXPERT),
    lambda h, t, rec, k: ite(k <= 0, nil(EXPERT), cons(h, rec(k - 1))),
)
DROP = recursive(
    "drop",
    [k, experts],
    LIST,
    lambda k: nil(EXPERT),
    lambda h, t, rec, k: ite(k <= 0, cons(h, t), rec(k - 1)),
)
ALL_LEAD = recursive(  # is every one better than every other?
    "all_lead",
    [experts, others],
    BOOL,
    lambda others: TRUE,
    lambda h, t, rec, others: conj(LEADS(h, others), rec(others)),
    on=0,
)
SIZE = length(EXPERT)


@lemma
def _leads_insert() -> Thm:
    goal = eq(LEADS(b, INSERT(a, experts)), conj(better(b, a), LEADS(b, experts)))
    return by_induction(experts, forall([b, a], goal), defs=[LEADS, INSERT])


@lemma
def _leads_transitive() -> Thm:
    goal = implies(conj(better(b, a), LEADS(a, experts)), LEADS(b, experts))
    return by_induction(experts, forall([b, a], goal), defs=[LEADS])


@lemma
def _insert_keeps_ranked() -> Thm:
    def at(experts: Term) -> Term:
        return forall([a], implies(RANKED(experts), RANKED(INSERT(a, experts))))

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        whole = cons(h, t)
        (ranked,) = suppose(RANKED(whole))
        laws = [
            at_next(RANKED, h, t),
            at_next(INSERT, h, t, a),
            at_next(RANKED, a, whole),
            at_next(LEADS, h, t, a),
            at_next(RANKED, h, INSERT(a, t)),
        ]
        inner = use(smaller(a), have(RANKED(t), ranked, *laws))
        over = _leads_transitive()(t)(a, h)
        goal = RANKED(INSERT(a, whole))
        first, second = suppose(better(a, h))[0], suppose(~better(a, h))[0]
        yes = kernel.ground(goal, [first, ranked, over, *laws])
        no = kernel.ground(
            goal, [second, ranked, inner, _leads_insert()(t)(h, a), *laws]
        )
        return close([a], [ranked], kernel.by_cases(better(a, h), yes, no))

    base = auto(at(nil(EXPERT)), defs=[RANKED, INSERT, LEADS])
    return list_induction(experts, at(experts), base, step)


def ranking_is_ordered() -> Term:
    """The ranking is ordered: everything is better than all that comes after it."""
    return forall([experts], RANKED(RANK(experts)))


@lemma
def _prove_ordered() -> Thm:
    by = [_insert_keeps_ranked()]
    return by_induction(experts, RANKED(RANK(experts)), by=by, defs=[RANKED, RANK])


def ranking_is_permutation() -> Term:
    """The ranking holds every expert exactly as often as the input does."""
    return forall([experts, b], eq(COUNT(b, RANK(experts)), COUNT(b, experts)))


@lemma
def _prove_permutation() -> Thm:
    one = ite(eq(a, b), integer(1), integer(0))
    grown = eq(COUNT(b, INSERT(a, experts)), COUNT(b, experts) + one)
    insert = by_induction(experts, forall([b, a], grown), defs=[COUNT, INSERT])
    goal = forall([b], eq(COUNT(b, RANK(experts)), COUNT(b, experts)))
    th = by_induction(experts, goal, by=[insert], defs=[COUNT, RANK])
    return restate(ranking_is_permutation(), th)


def _top(taken: Term) -> Term:
    rest = DROP(k, RANK(experts))
    return forall([experts, k], ALL_LEAD(taken, rest))


def top_k_leads_the_rest() -> Term:
    """Each of the first k is better than each of the rest: a higher score, or the
    same score and the lower index.
    """
    return _top(TAKE(k, RANK(experts)))


@lemma
def _prove_top() -> Thm:
    goal = implies(LEADS(b, experts), LEADS(b, DROP(k, experts)))
    drop = by_induction(experts, forall([b, k], goal), defs=[LEADS, DROP])
    split = ALL_LEAD(TAKE(k, experts), DROP(k, experts))
    defs = [RANKED, ALL_LEAD, TAKE, DROP]
    goal = forall([k], implies(RANKED(experts), split))
    th = by_induction(experts, goal, by=[drop], defs=defs)
    at = kernel.mp(th(RANK(experts))(k), _prove_ordered()(experts))
    return kernel.generalize([experts, k], at)


def top_k_has_k() -> Term:
    """From at least k experts exactly k are taken."""
    inside = conj(k >= 0, k <= SIZE(experts))
    return forall([experts, k], implies(inside, eq(SIZE(TAKE(k, experts)), k)))


@lemma
def _prove_has_k() -> Thm:
    nonneg = by_induction(experts, SIZE(experts) >= 0, defs=[SIZE])
    inside = conj(k >= 0, k <= SIZE(experts))
    goal = forall([k], implies(inside, eq(SIZE(TAKE(k, experts)), k)))
    th = by_induction(experts, goal, by=[nonneg], defs=[SIZE, TAKE])
    return restate(top_k_has_k(), th)


def _top_mutants() -> Mapping[str, Term]:
    unsorted = ALL_LEAD(TAKE(k, experts), DROP(k, experts))
    top, rest = TAKE(k, RANK(experts)), DROP(k, RANK(experts))
    return {
        "the first k without ranking": forall([experts, k], unsorted),
        "the rest before the top": forall([experts, k], ALL_LEAD(rest, top)),
    }


def _size_mutants() -> Mapping[str, Term]:
    goal = implies(k >= 0, eq(SIZE(TAKE(k, experts)), k))
    return {"more than there are": forall([experts, k], goal)}


ALL = "all numbers of experts, all real scores with ties"


def _ordered_mutants() -> Mapping[str, Term]:
    """Wrong variants of ranking_is_ordered."""
    return {"experts as they come": forall([experts], RANKED(experts))}


def _permutation_mutants() -> Mapping[str, Term]:
    """Wrong variants of ranking_is_permutation."""
    ranked = COUNT(b, RANK(experts))
    more = COUNT(b, RANK(cons(a, experts)))
    return {
        "every expert once": forall([experts, b], eq(ranked, 1)),
        "one expert is lost": forall([experts, a, b], eq(more, COUNT(b, experts))),
    }


THEOREMS: Theorems = {
    "ranking_is_ordered": Theorem(
        statement=ranking_is_ordered,
        proof=_prove_ordered,
        scope=ALL,
        mutants=_ordered_mutants,
    ),
    "ranking_is_permutation": Theorem(
        statement=ranking_is_permutation,
        proof=_prove_permutation,
        scope=ALL,
        mutants=_permutation_mutants,
    ),
    "top_k_leads_the_rest": Theorem(
        statement=top_k_leads_the_rest,
        proof=_prove_top,
        scope=ALL + ", all k",
        mutants=_top_mutants,
    ),
    "top_k_has_k": Theorem(
        statement=top_k_has_k,
        proof=_prove_has_k,
        scope=ALL + ", all k",
        mutants=_size_mutants,
    ),
}
