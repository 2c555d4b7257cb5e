"""MLA: how long the cache is after a run."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import by_induction, lemma, restate
from k3.logic.kernel import Thm
from k3.logic.sorts import fun, list_of
from k3.logic.syntax import eq, forall, fst, lam, pair, var
from k3.logic.terms import Symbol, Term
from k3.proof.lists import length
from k3.proof.mla import ENTRY, SIZE, SNOC, prove_grows
from k3.proof.scan import OUTPUT, TOKEN, run
from k3.proof.theorem import Theorem, Theorems

CACHE = list_of(ENTRY)
cache, tokens = var("cache", CACHE), var("tokens", list_of(TOKEN))
token = var("token", TOKEN)
# what a token adds, and what it puts out; both may read the cache, as a layer does
made = var("made", fun(CACHE, TOKEN, ENTRY))
read = var("read", fun(CACHE, TOKEN, OUTPUT))
EVERY = [made, read, cache, tokens]
COUNT = length(TOKEN)
RUN: Symbol = run(CACHE, TOKEN, OUTPUT)


def _step() -> Term:
    """Append the token's entry, then attend over the cache that holds it."""
    grown = SNOC(cache, made(cache, token))
    return lam([cache, token], pair(grown, read(grown, token)))


def _after() -> Term:
    return SIZE(fst(RUN(_step(), cache, tokens)))


def _length(expected: Term) -> Term:
    return forall(EVERY, eq(_after(), expected))


def run_cache_length() -> Term:
    """After a run over any tokens the cache is longer by the number of tokens."""
    return _length(SIZE(cache) + COUNT(tokens))


@lemma
def _prove_run() -> Thm:
    phi = forall([cache], eq(_after(), SIZE(cache) + COUNT(tokens)))
    th = by_induction(tokens, phi, by=[prove_grows()], defs=[RUN, COUNT])
    return restate(run_cache_length(), kernel.generalize([made, read], th))


def _run_mutants() -> Mapping[str, Term]:
    """Wrong variants of run_cache_length."""
    return {
        "what was there is forgotten": _length(COUNT(tokens)),
        "the last token adds nothing": _length(SIZE(cache) + COUNT(tokens) - 1),
        "one entry for a run": _length(SIZE(cache) + 1),
    }


THEOREMS: Theorems = {
    "run_cache_length": Theorem(
        statement=run_cache_length,
        proof=_prove_run,
        scope="all cache lengths, all token lists, all entries and readouts",
        mutants=_run_mutants,
    ),
}
