"""Indices of tool calls and of their results."""

from collections.abc import Mapping
from functools import cache

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    have,
    lemma,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.match import opened, prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, Sort, list_of, named, pair_of
from k3.logic.syntax import (
    conj,
    cons,
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
from k3.logic.terms import Symbol, Term
from k3.proof.lists import entry, length, mapped
from k3.proof.theorem import Theorem, Theorems

CALL, RESULT = named("Call"), named("Result")
n, k, i = (var(name, INT) for name in "nki")


@cache
def numbered(element: Sort) -> Symbol:
    """The elements with their numbers, from k on."""
    k, xs = var("k", INT), var("xs", list_of(element))
    return recursive(
        f"numbered[{element}]",
        [k, xs],
        list_of(pair_of(INT, element)),
        lambda k: nil(pair_of(INT, element)),
        lambda h, t, rec, k: cons(pair(k, h), rec(k + 1)),
    )


calls, results = var("calls", list_of(CALL)), var("results", list_of(RESULT))
INDEXED = pair_of(INT, RESULT)
blank = var("blank", INDEXED)


def numbers(element: Sort, xs: Term) -> Term:
    """The indices of the elements of xs, counted from 1."""
    item = var("item", pair_of(INT, element))
    first = lam([item], fst(item))
    return mapped(pair_of(INT, element), INT)(first, numbered(element)(integer(1), xs))


def same_indices() -> Term:
    """A message's calls and its results carry the same indices, in the same order, if
    there are as many.
    """
    many = eq(length(CALL)(calls), length(RESULT)(results))
    same = eq(numbers(CALL, calls), numbers(RESULT, results))
    return forall([calls, results], implies(many, same))


def entry_and_index() -> Term:
    """The result at position i, counted from 0, carries index i + 1 and is unchanged;
    and there are as many indexed results as results.
    """
    listed = numbered(RESULT)(integer(1), results)
    at = entry(INDEXED)(blank, listed, i)
    plain = entry(RESULT)(snd(blank), results, i)
    inside = conj(i >= 0, i < length(RESULT)(results))
    goal = conj(
        implies(inside, eq(at, pair(i + 1, plain))),
        eq(length(INDEXED)(listed), length(RESULT)(results)),
    )
    return forall([blank, results, i], goal)


# k, k + 1, ..., as many as n
UPTO = recursive(
    "upto",
    [k, n],
    list_of(INT),
    lambda k: nil(INT),
    lambda n, rec, k: cons(k, rec(k + 1)),
)


def _counted(element: Sort) -> Thm:
    """The numbers from k on are k, k + 1, ..., as many as there are elements."""
    xs, item = var("xs", list_of(element)), var("item", pair_of(INT, element))
    heads = mapped(pair_of(INT, element), INT)(
        lam([item], fst(item)), numbered(element)(k, xs)
    )
    size = length(element)(xs)
    nonneg = by_induction(xs, size >= 0, defs=[length(element)])
    goal = forall([k], eq(heads, UPTO(k, size)))
    defs = [
        mapped(pair_of(INT, element), INT),
        numbered(element),
        length(element),
        UPTO,
    ]
    return prenex(by_induction(xs, goal, by=[nonneg], defs=defs))


@lemma
def _prove_same_indices() -> Thm:
    many = eq(length(CALL)(calls), length(RESULT)(results))
    hyps = suppose(many)
    left, right = _counted(CALL)(calls, 1), _counted(RESULT)(results, 1)
    goal = eq(numbers(CALL, calls), numbers(RESULT, results))
    return close([calls, results], hyps, have(goal, left, right, *hyps))


def _same_mutants() -> Mapping[str, Term]:
    """Wrong variants of same_indices."""
    same = eq(numbers(CALL, calls), numbers(RESULT, results))
    return {"fewer results than calls": forall([calls, results], same)}


@lemma
def _entries() -> Thm:
    """Entry i of the elements numbered from k is (k + i, element i)."""
    listed = numbered(RESULT)(k, results)
    at = entry(INDEXED)(blank, listed, i)
    plain = entry(RESULT)(snd(blank), results, i)
    inside = conj(i >= 0, i < length(RESULT)(results))
    goal = implies(inside, eq(at, pair(k + i, plain)))
    defs = [numbered(RESULT), entry(INDEXED), entry(RESULT), length(RESULT)]
    return by_induction(results, forall([blank, k, i], goal), defs=defs)


@lemma
def _as_many() -> Thm:
    """There are as many numbered elements as elements."""
    listed = numbered(RESULT)(k, results)
    goal = eq(length(INDEXED)(listed), length(RESULT)(results))
    defs = [numbered(RESULT), length(RESULT), length(INDEXED)]
    return by_induction(results, forall([k], goal), defs=defs)


@lemma
def _prove_entry() -> Thm:
    vs, goal = opened(entry_and_index())
    at = _entries()(vs[1])(vs[0], 1, vs[2])
    first, second = goal.args
    ths = [kernel.ground(first, [at]), have(second, _as_many()(vs[1])(1))]
    return kernel.generalize(vs, kernel.conj_intro(*ths))


def _entry_mutants() -> Mapping[str, Term]:
    """Wrong variants of entry_and_index."""
    listed = numbered(RESULT)(integer(1), results)
    at = entry(INDEXED)(blank, listed, i)
    inside = conj(i >= 0, i < length(RESULT)(results))
    return {
        "counted from 0": forall([blank, results, i], implies(inside, eq(fst(at), i))),
        "beyond the results": forall(
            [blank, results, i], implies(i >= 0, eq(fst(at), i + 1))
        ),
    }


ANY = "all types of calls and results, all lengths"
THEOREMS: Theorems = {
    "same_indices": Theorem(
        statement=same_indices,
        proof=_prove_same_indices,
        scope=ANY,
        mutants=_same_mutants,
    ),
    "entry_and_index": Theorem(
        statement=entry_and_index,
        proof=_prove_entry,
        scope=ANY,
        mutants=_entry_mutants,
    ),
}
