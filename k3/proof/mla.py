"""MLA: list cache and packed cache, cache growth, absorbed and expanded heads."""

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
from k3.logic.sorts import INT, REAL, fun, list_of, named
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    implies,
    integer,
    ite,
    lam,
    nil,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import entry, length, snoc, total
from k3.proof.sums import SUM, f, sigma, sum_congruence, sum_scale, sum_swap
from k3.proof.theorem import Theorem, Theorems

ENTRY = named("Entry")
cache, e, blank = var("cache", list_of(ENTRY)), var("e", ENTRY), var("blank", ENTRY)
n, i, j, c, t = (var(v, INT) for v in ("n", "i", "j", "c", "t"))
weight, content = var("weight", fun(ENTRY, REAL)), var("content", fun(ENTRY, REAL))
rows = var("rows", fun(INT, ENTRY))
ADD, SIZE, AT, SNOC = total(ENTRY), length(ENTRY), entry(ENTRY), snoc(ENTRY)

# Σ weight·content / Σ weight over a list of entries, and over n packed rows
OVER_LIST = define(
    "attend_list",
    [weight, content, cache],
    ADD(lam([e], weight(e) * content(e)), cache) / ADD(lam([e], weight(e)), cache),
)
OVER_ROWS = define(
    "attend_rows",
    [weight, content, rows, n],
    sigma(n, weight(rows(i)) * content(rows(i)), i) / sigma(n, weight(rows(i)), i),
)


def cache_grows_by_one() -> Term:
    """Appending an entry makes the cache one longer."""
    return forall([cache, e], eq(SIZE(SNOC(cache, e)), SIZE(cache) + 1))


@lemma
def prove_grows() -> Thm:
    """The length of a grown cache."""
    goal = forall([e], eq(SIZE(SNOC(cache, e)), SIZE(cache) + 1))
    return restate(cache_grows_by_one(), by_induction(cache, goal, defs=[SIZE, SNOC]))


@lemma
def _size_nonneg() -> Thm:
    return by_induction(cache, SIZE(cache) >= 0, defs=[SIZE])


def packed_append() -> Term:
    """Packing a grown cache is appending a row to the packed cache."""
    grown = ite(eq(i, SIZE(cache)), e, AT(blank, cache, i))
    inside = conj(i >= 0, i <= SIZE(cache))
    goal = eq(AT(blank, SNOC(cache, e), i), grown)
    return forall([cache, e, blank, i], implies(inside, goal))


@lemma
def prove_packed_append() -> Thm:
    """Rows of a grown cache."""
    grown = ite(eq(i, SIZE(cache)), e, AT(blank, cache, i))
    inside = conj(i >= 0, i <= SIZE(cache))
    goal = implies(inside, eq(AT(blank, SNOC(cache, e), i), grown))
    by, defs = [_size_nonneg()], [SIZE, SNOC, AT]
    th = by_induction(cache, forall([e, blank, i], goal), by=by, defs=defs)
    return restate(packed_append(), th)


@lemma
def _sum_shift() -> Thm:
    """Σ over i < n + 1 of f is f 0 plus Σ over i < n of f (i + 1)."""
    goal = eq(SUM(f, n + 1), f(0) + sigma(n, f(i + 1), i))
    return by_induction(n, forall([f], goal), defs=[SUM])


@lemma
def _list_is_rows() -> Thm:
    """A sum over a list is the sum over its packed rows."""
    value = var("value", fun(ENTRY, REAL))

    def at(cache: Term) -> Term:
        packed = sigma(SIZE(cache), value(AT(blank, cache, i)), i)
        return eq(ADD(value, cache), packed)

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        whole = cons(h, tail)
        natural = _size_nonneg()(tail)
        each = lam([i], value(AT(blank, whole, i)))
        shifted = use(_sum_shift()(SIZE(tail)), natural)(each)
        inside = suppose(conj(i >= 0, i < SIZE(tail)))
        law = at_next(AT, h, tail, blank, i + 1)
        back = kernel.congr(
            AT(blank, tail, i + 1 - 1),
            kernel.refl(blank),
            kernel.refl(tail),
            kernel.ring(i + 1 - 1, i),
        )
        same = kernel.ground(
            eq(AT(blank, whole, i + 1), AT(blank, tail, i)), [law, back, *inside]
        )
        same = kernel.congr(value(AT(blank, whole, i + 1)), kernel.refl(value), same)
        rows = lam([i], value(AT(blank, whole, i + 1)))
        less = lam([i], value(AT(blank, tail, i)))
        agree = close([i], inside, same)
        sums = use(sum_congruence()(rows, less, SIZE(tail)), natural, agree)
        first = at_next(AT, h, tail, blank, integer(0))
        count = at_next(SIZE, h, tail)
        whole_sum = kernel.congr(SUM(each, SIZE(whole)), kernel.refl(each), count)
        added = at_next(ADD, h, tail, value)
        facts = [whole_sum, shifted, sums, smaller, added, first]
        return kernel.ground(at(whole), facts)

    base = auto(at(nil(ENTRY)), defs=[ADD, SIZE, SUM])
    return kernel.generalize(
        [value, blank], list_induction(cache, at(cache), base, step)
    )


def packed_equals_list() -> Term:
    """Attention over the list of cache entries is attention over its packed rows."""
    packed = lam([i], AT(blank, cache, i))
    left = OVER_LIST(weight, content, cache)
    right = OVER_ROWS(weight, content, packed, SIZE(cache))
    return forall([weight, content, cache, blank], eq(left, right))


@lemma
def prove_packed() -> Thm:
    """List attention as packed attention."""
    packed = lam([i], AT(blank, cache, i))
    laws = [
        unfold(OVER_LIST, weight, content, cache),
        unfold(OVER_ROWS, weight, content, packed, SIZE(cache)),
    ]
    sums = [
        _list_is_rows()(value, blank)(cache)
        for value in (lam([e], weight(e) * content(e)), lam([e], weight(e)))
    ]
    left, right = (
        OVER_LIST(weight, content, cache),
        OVER_ROWS(weight, content, packed, SIZE(cache)),
    )
    quotient = kernel.congr(laws[0].concl.args[1], *sums)
    th = kernel.trans(kernel.trans(laws[0], quotient), kernel.sym(laws[1]))
    assert th.concl is eq(left, right)
    return kernel.generalize([weight, content, cache, blank], th)


heads, latent = var("heads", INT), var("latent", INT)
q, row = var("q", fun(INT, REAL)), var("row", fun(INT, REAL))
K = var("K", fun(INT, INT, REAL))


def _absorbed(query: Term) -> Term:
    """Σ_c q_c (Σ_i row_i K_ic) against Σ_i row_i (Σ_c K_ic q_c)."""
    expanded = sigma(heads, q(c) * sigma(latent, row(i) * K(i, c), i), c)
    every = [heads, latent, q, row, K]
    absorbed = sigma(latent, row(i) * query, i)
    inside = conj(heads >= 0, latent >= 0)
    return forall(every, implies(inside, eq(expanded, absorbed)))


def absorbed_score_equals_expanded() -> Term:
    """Projecting the query once scores the latent rows like expanding every key."""
    return _absorbed(sigma(heads, K(i, c) * q(c), c))


@lemma
def _prove_absorbed() -> Thm:
    hyps = suppose(conj(heads >= 0, latent >= 0))
    term = q(c) * (row(i) * K(i, c))
    table = lam([c, i], term)
    pull = use(sum_scale()(latent, q(c), lam([i], row(i) * K(i, c))), *hyps)
    left = sigma(heads, q(c) * sigma(latent, row(i) * K(i, c), i), c)
    inward = _under(left, c, kernel.sym(pull))
    swap = use(sum_swap()(latent, heads, table), *hyps)
    other = lam([c], row(i) * (K(i, c) * q(c)))
    reorder = kernel.abstract([c], kernel.ring(term, row(i) * (K(i, c) * q(c))))
    inner = kernel.congr(SUM(lam([c], term), heads), reorder, kernel.refl(heads))
    factor = use(sum_scale()(heads, row(i), lam([c], K(i, c) * q(c))), *hyps)
    assert factor.concl.args[0] is SUM(other, heads)
    outward = _under(
        sigma(latent, SUM(lam([c], term), heads), i), i, kernel.trans(inner, factor)
    )
    th = kernel.trans(kernel.trans(inward, swap), outward)
    every = [heads, latent, q, row, K]
    return restate(absorbed_score_equals_expanded(), close(every, hyps, th))


def _under(whole: Term, index: Term, same: Thm) -> Thm:
    """Rewrite the body of a sum."""
    return kernel.congr(
        whole, kernel.abstract([index], same), kernel.refl(whole.args[1])
    )


def _absorbed_mutants() -> Mapping[str, Term]:
    return {
        "the transposed projection": _absorbed(sigma(heads, K(c, i) * q(c), c)),
        "the query not projected": _absorbed(q(i)),
    }


def _append_mutants() -> Mapping[str, Term]:
    first = ite(eq(i, 0), e, AT(blank, cache, i - 1))
    inside = conj(i >= 0, i <= SIZE(cache))
    goal = eq(AT(blank, SNOC(cache, e), i), first)
    return {"the new row in front": forall([cache, e, blank, i], implies(inside, goal))}


ALL = "all cache lengths, all scores and values of entries"


def _growth_mutants() -> Mapping[str, Term]:
    """Wrong variants of cache_grows_by_one."""
    grown = SIZE(SNOC(cache, e))
    return {
        "the entry is not kept": forall([cache, e], eq(grown, SIZE(cache))),
        "two entries": forall([cache, e], eq(grown, SIZE(cache) + 2)),
    }


def _packed_mutants() -> Mapping[str, Term]:
    """Wrong variants of packed_equals_list."""
    left, every = OVER_LIST(weight, content, cache), [weight, content, cache, blank]
    here, later = (lam([i], AT(blank, cache, k)) for k in (i, i + 1))
    return {
        "the newest row is not read": forall(
            every, eq(left, OVER_ROWS(weight, content, here, SIZE(cache) - 1))
        ),
        "off by one: the rows after": forall(
            every, eq(left, OVER_ROWS(weight, content, later, SIZE(cache)))
        ),
    }


THEOREMS: Theorems = {
    "cache_grows_by_one": Theorem(
        statement=cache_grows_by_one,
        proof=prove_grows,
        scope="all cache lengths",
        mutants=_growth_mutants,
    ),
    "packed_append": Theorem(
        statement=packed_append,
        proof=prove_packed_append,
        scope="all cache lengths, all entries",
        mutants=_append_mutants,
    ),
    "packed_equals_list": Theorem(
        statement=packed_equals_list,
        proof=prove_packed,
        scope=ALL,
        mutants=_packed_mutants,
    ),
    "absorbed_score_equals_expanded": Theorem(
        statement=absorbed_score_equals_expanded,
        proof=_prove_absorbed,
        scope="all latent and head widths, all reals",
        mutants=_absorbed_mutants,
    ),
}
