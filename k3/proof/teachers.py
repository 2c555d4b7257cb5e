"""Post-training: nine teachers, one for each domain and effort."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import close, have, lemma, suppose
from k3.logic.kernel import Thm
from k3.logic.sorts import INT
from k3.logic.syntax import conj, eq, forall, implies, integer, ite, var
from k3.logic.terms import Term, open_body
from k3.proof.theorem import Theorem, Theorems

domain, effort, n = var("domain", INT), var("effort", INT), var("n", INT)
DOMAINS, EFFORTS = 3, 3
THIRD = ite(n < 3, integer(0), ite(n < 6, integer(1), integer(2)))


def _below(x: Term, most: int) -> Term:
    return conj(x >= 0, x < most)


def _counted(count: int) -> Term:
    """Under: a domain, an effort, a number. The number is theirs and they are its."""
    pairs = conj(_below(domain, DOMAINS), _below(effort, EFFORTS))
    number, rest = domain * EFFORTS + effort, n - THIRD * EFFORTS
    named = implies(
        conj(pairs, eq(n, number)),
        conj(_below(n, count), eq(THIRD, domain), eq(rest, effort)),
    )
    reached = conj(_below(THIRD, DOMAINS), _below(rest, EFFORTS))
    return forall([domain, effort, n], conj(named, implies(_below(n, count), reached)))


def nine_teachers() -> Term:
    """3·domain + effort numbers the pairs of three domains and three efforts by 0 to 8:
    no number is that of two pairs, and every number is that of one.
    """
    return _counted(9)


@lemma
def _prove_nine() -> Thm:
    ths = []
    for part in _parts():
        hyps = suppose(part.args[0])
        ths.append(close([], hyps, have(part.args[1], *hyps)))
    return kernel.generalize([domain, effort, n], kernel.conj_intro(*ths))


def _parts() -> tuple[Term, ...]:
    """Both directions, for these variables."""
    return open_body(nine_teachers().args[0], (domain, effort, n)).args


def _mutants() -> Mapping[str, Term]:
    """Wrong variants of nine_teachers."""
    return {"eight are enough": _counted(8), "one more": _counted(10)}


THEOREMS: Theorems = {
    "nine_teachers": Theorem(
        statement=nine_teachers,
        proof=_prove_nine,
        scope="the released counts of domains and efforts",
        mutants=_mutants,
    ),
}
