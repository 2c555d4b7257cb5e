"""The two-stage search for a prefix: it finds the longest hit of `cache`."""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    by_induction,
    close,
    have,
    lemma,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.match import prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT
from k3.logic.syntax import (
    TRUE,
    conj,
    eq,
    forall,
    implies,
    integer,
    ite,
    var,
)
from k3.logic.terms import Term
from k3.proof.cache import (
    ALL,
    CHECKPOINT,
    HELD,
    LONGEST,
    PAGES,
    REGISTRY,
    RESTORABLE,
    k,
    m,
    n,
    pages,
    prefix,
)
from k3.proof.theorem import Theorem, Theorems

i, start, stride, steps = (var(v, INT) for v in ("i", "start", "stride", "steps"))


def _climb(i: Term, rec: Callable[..., Term], *given: Term) -> Term:
    pages, prefix, stride, n, start = given
    further = start + stride
    held = conj(further <= n, pages(prefix(further)))
    return ite(held, rec(pages, prefix, stride, n, further), start)


# go up in strides while the end of the next one has its rows, within the request
CLIMB = recursive(
    "climb",
    [*PAGES, stride, n, start, steps],
    INT,
    lambda pages, prefix, stride, n, start: start,
    _climb,
)
# whole physical blocks of k hash blocks first, then hash blocks
MATCHED = define(
    "matched",
    [*PAGES, k, n],
    CLIMB(*PAGES, integer(1), n, CLIMB(*PAGES, k, n, integer(0), n), n),
)
LOOKUP = define(
    "lookup", [*REGISTRY, k, n], CHECKPOINT(*REGISTRY, MATCHED(*PAGES, k, n))
)


# up to n, pages of a prefix are not dropped before those of its extensions
CLOSED = recursive(
    "closed",
    [*PAGES, n],
    BOOL,
    lambda pages, prefix: TRUE,
    lambda n, rec, pages, prefix: conj(
        rec(pages, prefix), implies(n >= 1, pages(prefix(n + 1)), pages(prefix(n)))
    ),
)


def two_stage_finds_longest() -> Term:
    """Looking at the ends of whole physical blocks, then at hash blocks, then down for
    checkpoints finds the longest restorable boundary, if pages of a prefix are never
    dropped before those of its extensions; physical blocks of any size.
    """
    same = eq(LOOKUP(*REGISTRY, k, n), LONGEST(*REGISTRY, n))
    given = conj(n >= 0, k >= 1, CLOSED(*PAGES, n))
    return forall([*REGISTRY, k, n], implies(given, same))


@lemma
def _held_at_end() -> Thm:
    """Where pages are closed, all blocks are held if the last one is."""
    given = conj(CLOSED(*PAGES, n), n >= 1, pages(prefix(n)))
    phi = implies(given, HELD(*PAGES, n))
    none = at_zero(HELD, *PAGES)
    th = by_induction(n, phi, by=[none], defs=[HELD, CLOSED])
    return prenex(kernel.generalize(PAGES, th))


@lemma
def _closed_below() -> Thm:
    """Fewer pages are closed too."""
    phi = implies(conj(m >= 0, m <= n, CLOSED(*PAGES, n)), CLOSED(*PAGES, m))
    return prenex(by_induction(n, forall([*PAGES, m], phi), defs=[CLOSED]))


@lemma
def _held_below() -> Thm:
    """Fewer blocks are held too."""
    phi = implies(conj(m >= 0, m <= n, HELD(*PAGES, n)), HELD(*PAGES, m))
    return prenex(by_induction(n, forall([*PAGES, m], phi), defs=[HELD]))


@lemma
def _climb_holds() -> Thm:
    """What a climb reaches is held and within the request."""
    hyps = suppose(CLOSED(*PAGES, n), stride >= 1)
    at = CLIMB(*PAGES, stride, n, start, steps)
    from_here = conj(start >= 0, start <= n, HELD(*PAGES, start))
    phi = implies(from_here, conj(at >= start, at <= n, HELD(*PAGES, at)))
    by = [_held_at_end(), _closed_below(), *hyps]
    th = by_induction(steps, forall([start], phi), by, [CLIMB])
    return prenex(close([*PAGES, stride, n], hyps, th))


@lemma
def _climb_ends() -> Thm:
    """With stride 1 and enough steps the climb ends where the next rows are missing."""
    at = CLIMB(*PAGES, integer(1), n, start, steps)
    enough = conj(start <= n, n - start <= steps)
    stuck = eq(at, n) | ~pages(prefix(at + 1))
    phi = forall([*PAGES, n, start], implies(enough, stuck))
    return prenex(by_induction(steps, phi, defs=[CLIMB]))


@lemma
def _checkpoints_suffice() -> Thm:
    """Where all rows are held, only the checkpoints matter."""
    same = eq(CHECKPOINT(*REGISTRY, n), LONGEST(*REGISTRY, n))
    phi = forall(REGISTRY, implies(HELD(*PAGES, n), same))
    defs = [CHECKPOINT, LONGEST, RESTORABLE, HELD]
    return prenex(by_induction(n, phi, defs=defs))


@lemma
def _nothing_above() -> Thm:
    """Beyond the first missing rows there is no longer boundary."""
    hyps = suppose(m >= 0, ~HELD(*PAGES, m + 1))
    same = eq(LONGEST(*REGISTRY, n), LONGEST(*REGISTRY, m))
    below = _held_below()
    th = by_induction(
        n,
        implies(m <= n, same),
        by=[below, at_next(HELD, m, *PAGES), *hyps],
        defs=[LONGEST, RESTORABLE, HELD],
    )
    return prenex(close([*REGISTRY, m], hyps, th))


@lemma
def _prove_two_stage() -> Thm:
    (size,) = hyps = suppose(conj(n >= 0, k >= 1, CLOSED(*PAGES, n)))
    coarse = CLIMB(*PAGES, k, n, integer(0), n)
    fine = CLIMB(*PAGES, integer(1), n, coarse, n)
    none = at_zero(HELD, *PAGES)
    first = use(_climb_holds()(*PAGES, k, n, n, 0), size, none)
    second = use(_climb_holds()(*PAGES, 1, n, n, coarse), size, first)
    stuck = use(_climb_ends()(n, *PAGES, n, coarse), size, first)
    down = use(_checkpoints_suffice()(fine, *REGISTRY), first, second)
    held = have(
        implies(HELD(*PAGES, fine + 1), pages(prefix(fine + 1))),
        *[at_next(HELD, fine, *PAGES), first, second],
    )
    missing = suppose(~eq(fine, n))
    absent = kernel.ground(~HELD(*PAGES, fine + 1), [held, stuck, *missing])
    above = use(_nothing_above()(*REGISTRY, fine, n), absent, first, second, size)
    found = unfold(LOOKUP, *REGISTRY, k, n), unfold(MATCHED, *PAGES, k, n)
    goal = eq(LOOKUP(*REGISTRY, k, n), LONGEST(*REGISTRY, n))
    no = kernel.ground(goal, [above, down, *found])
    yes = kernel.ground(goal, [down, *found, *suppose(eq(fine, n))])
    th = kernel.by_cases(eq(fine, n), yes, no)
    return close([*REGISTRY, k, n], hyps, th)


def _two_stage_mutants() -> Mapping[str, Term]:
    same = eq(LOOKUP(*REGISTRY, k, n), LONGEST(*REGISTRY, n))
    given = conj(n >= 0, k >= 1)
    return {
        "pages dropped in any order": forall([*REGISTRY, k, n], implies(given, same)),
    }


THEOREMS: Theorems = {
    "two_stage_finds_longest": Theorem(
        statement=two_stage_finds_longest,
        proof=_prove_two_stage,
        scope=f"{ALL}, all physical block sizes; pages closed under prefixes",
        mutants=_two_stage_mutants,
        hints={"pages dropped in any order": {"n": 2, "k": 2}},
    ),
}
