"""MoonEP: how many experts a rank fetches when they all come from one source."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    close,
    lemma,
    nat_induction,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, fun
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    implies,
    integer,
    ite,
    lam,
    maximum,
    var,
)
from k3.logic.terms import Term
from k3.proof.theorem import Theorem, Theorems
from k3.proof.verified import BELOW

experts, ranks, most, e, r = (
    var(v, INT) for v in ("experts", "ranks", "most", "e", "r")
)
home, source = var("home", fun(INT, INT)), var("source", fun(INT, INT))
uses = var("uses", fun(INT, INT, BOOL))  # does rank r compute slots of expert e?
holds, also = var("holds", fun(INT, BOOL)), var("also", fun(INT, BOOL))

COUNT = recursive(  # of how many numbers below n it holds
    "count_below",
    [holds, experts],
    INT,
    lambda holds: integer(0),
    lambda n, rec, holds: rec(holds) + ite(holds(n), integer(1), integer(0)),
)


def _remote(r: Term) -> Term:
    """The experts that a rank computes and does not hold."""
    return lam([e], conj(uses(r, e), ~eq(home(e), r)))


def _held(r: Term) -> Term:
    return lam([e], eq(home(e), r))


PEAK = recursive(  # the most experts that any of the ranks fetches
    "peak_remote",
    [uses, home, experts, ranks],
    INT,
    lambda *_: integer(0),
    lambda r, rec, uses, home, experts: maximum(
        rec(uses, home, experts),
        COUNT(lam([e], conj(uses(r, e), ~eq(home(e), r))), experts),
    ),
)


def _one_source(r: Term) -> Term:
    """All remote experts of the rank are those of its source."""
    return BELOW(lam([e], implies(_remote(r)(e), eq(home(e), source(r)))), experts)


EVERY = [uses, home, source, experts, most]
NATURAL = conj(experts >= 0, most >= 0)


def _bounded(given: Term) -> Term:
    few = COUNT(_remote(r), experts) <= most
    return forall([*EVERY, r], implies(conj(NATURAL, given), few))


def one_source_bounds_remote() -> Term:
    """If all remote experts of a rank have one home, it fetches at most as many experts
    as that home holds.
    """
    return _bounded(conj(_one_source(r), COUNT(_held(source(r)), experts) <= most))


def _peak(given: Term) -> Term:
    peak = PEAK(uses, home, experts, ranks) <= most
    natural = conj(NATURAL, ranks >= 0)
    return forall([*EVERY, ranks], implies(conj(natural, given), peak))


def _each(r: Term) -> Term:
    return conj(_one_source(r), COUNT(_held(source(r)), experts) <= most)


def one_source_bounds_peak() -> Term:
    """If every rank fetches from one source only, no rank fetches more experts than a
    rank holds.
    """
    return _peak(BELOW(lam([r], _each(r)), ranks))


@lemma
def _monotone() -> Thm:
    """What holds where something else holds holds of at most as many numbers."""

    def goal(n: Term) -> Term:
        inside = BELOW(lam([e], implies(holds(e), also(e))), n)
        return implies(inside, COUNT(holds, n) <= COUNT(also, n))

    def step(n: Term, natural: Thm, smaller: Thm) -> Thm:
        inside = lam([e], implies(holds(e), also(e)))
        laws = [use(at_next(BELOW, n, inside), natural)]
        laws += [use(at_next(COUNT, n, f), natural) for f in (holds, also)]
        return kernel.ground(goal(n + 1), [*laws, smaller])

    counts = [at_zero(COUNT, f) for f in (holds, also)]
    base = kernel.ground(goal(integer(0)), counts)
    (natural,) = suppose(experts >= 0)
    th = nat_induction(experts, goal(experts), base, step)
    th = kernel.mp(th(experts), natural)
    return close([experts, holds, also], [natural], th)


@lemma
def _prove_remote() -> Thm:
    (given,) = suppose(conj(NATURAL, _each(r)))
    law = _monotone()(experts, _remote(r), _held(source(r)))
    few = COUNT(_remote(r), experts) <= most
    return close([*EVERY, r], [given], kernel.ground(few, [law, given]))


@lemma
def _prove_peak() -> Thm:
    (natural,) = suppose(NATURAL)
    each = lam([r], _each(r))

    def goal(ranks: Term) -> Term:
        few = PEAK(uses, home, experts, ranks) <= most
        return implies(BELOW(each, ranks), few)

    def step(ranks: Term, positive: Thm, smaller: Thm) -> Thm:
        laws = [
            use(at_next(BELOW, ranks, each), positive),
            use(at_next(PEAK, ranks, uses, home, experts), positive),
            _prove_remote()(*EVERY, ranks),
        ]
        return kernel.ground(goal(ranks + 1), [*laws, smaller, natural])

    base = kernel.ground(
        goal(integer(0)), [at_zero(PEAK, uses, home, experts), natural]
    )
    (given,) = suppose(conj(conj(NATURAL, ranks >= 0), BELOW(each, ranks)))
    th = nat_induction(ranks, goal(ranks), base, step)
    th = kernel.discharge(natural.concl, th)
    th = use(th, given)
    return close([*EVERY, ranks], [given], use(th(ranks), given))


def _mutants() -> Mapping[str, Term]:
    return {
        "several sources": _bounded(COUNT(_held(source(r)), experts) <= most),
        "the bound of the rank itself": _bounded(
            conj(_one_source(r), COUNT(_held(r), experts) <= most)
        ),
    }


ALL = "all numbers of experts and ranks, all homes and assignments"
THEOREMS: Theorems = {
    "one_source_bounds_remote": Theorem(
        statement=one_source_bounds_remote,
        proof=_prove_remote,
        scope=ALL,
        mutants=_mutants,
    ),
    "one_source_bounds_peak": Theorem(
        statement=one_source_bounds_peak,
        proof=_prove_peak,
        scope=ALL,
        mutants=lambda: {
            "several sources": _peak(
                BELOW(lam([r], COUNT(_held(source(r)), experts) <= most), ranks)
            )
        },
    ),
}
