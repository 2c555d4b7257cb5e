"""AttnRes: mixing the sources of a packed block state."""

from collections.abc import Callable

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    exact,
    lemma,
    nat_induction,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, fun
from k3.logic.syntax import (
    cons,
    eq,
    forall,
    fst,
    implies,
    integer,
    ite,
    lam,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import snoc, total
from k3.proof.mla import ENTRY, OVER_LIST, content, weight
from k3.proof.packed_depth import LISTED, completed, count, e, i, n, rows, running, v
from k3.proof.sums import SUM, sigma
from k3.proof.theorem import Theorem, Theorems

ADD, SNOC = total(ENTRY), snoc(ENTRY)
ALL_SOURCES = define(
    "depth_sources",
    [e, completed, running],
    cons(e, ite(fst(running), SNOC(completed, snd(running)), completed)),
)


def _mass(each: Callable[[Term], Term], partial: bool = True) -> Term:
    """Embedding, packed rows and running sum."""
    last = ite(fst(running), each(snd(running)), real(0))
    whole = each(e) + sigma(count, each(rows(i)), i)
    return whole + last if partial else whole


def _mix(partial: bool = True) -> Term:
    top = _mass(lambda x: weight(x) * content(x), partial)
    packed = top / _mass(weight, partial)
    listed = OVER_LIST(weight, content, ALL_SOURCES(e, LISTED(rows, count), running))
    every = [weight, content, e, rows, count, running]
    return forall(every, implies(count >= 0, eq(listed, packed)))


def mix_reads_rows() -> Term:
    """Mixing the list of sources, embedding first and running sum last if there is one,
    is adding their weights and weighted contents from the packed rows.
    """
    return _mix()


value = var("value", fun(ENTRY, REAL))


@lemma
def _total() -> Thm:
    """A total over all sources, from the packed rows."""
    (natural,) = suppose(count >= 0)
    grown = eq(ADD(value, SNOC(completed, v)), ADD(value, completed) + value(v))
    last = by_induction(completed, forall([v], grown), defs=[ADD, SNOC])

    def goal(n: Term) -> Term:
        return eq(ADD(value, LISTED(rows, n)), sigma(n, value(rows(i)), i))

    def step(n: Term, natural: Thm, smaller: Thm) -> Thm:
        law = use(at_next(LISTED, n, rows), natural)
        one = last(LISTED(rows, n))(rows(n))
        same = kernel.congr(ADD(value, law.concl.args[0]), kernel.refl(value), law)
        summed = use(at_next(SUM, n, lam([i], value(rows(i)))), natural)
        return exact(goal(n + 1), same, one, smaller, summed)

    base = auto(goal(integer(0)), defs=[ADD, LISTED, SUM])
    done = use(nat_induction(n, goal(n), base, step)(count), natural)
    listed = LISTED(rows, count)
    sources = unfold(ALL_SOURCES, e, listed, running)
    both = kernel.congr(ADD(value, sources.concl.args[0]), kernel.refl(value), sources)
    rest = sources.concl.args[1].args[1]
    first = at_next(ADD, e, rest, value)
    more = last(listed)(snd(running))
    whole = eq(ADD(value, ALL_SOURCES(e, listed, running)), _mass(value))
    th = kernel.ground(whole, [both, first, more, done])
    return close([value, e, rows, count, running], [natural], th)


@lemma
def _prove_mix() -> Thm:
    (natural,) = suppose(count >= 0)
    listed = ALL_SOURCES(e, LISTED(rows, count), running)
    x = var("x", ENTRY)
    each = lam([x], weight(x) * content(x))
    masses = [
        use(_total()(f, e, rows, count, running), natural)
        for f in (each, lam([x], weight(x)))
    ]
    law = unfold(OVER_LIST, weight, content, listed)
    same = kernel.congr(law.concl.args[1], *masses)
    every = [weight, content, e, rows, count, running]
    return close(every, [natural], kernel.trans(law, same))


THEOREMS: Theorems = {
    "mix_reads_rows": Theorem(
        statement=mix_reads_rows,
        proof=_prove_mix,
        scope="all numbers of blocks, all weights and contents of sources",
        mutants=lambda: {"the running sum not mixed": _mix(partial=False)},
    ),
}
