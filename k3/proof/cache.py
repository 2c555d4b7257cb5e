"""Prefix lookup of the hybrid cache: the boundary at which a request may resume.

A request is cut at the ends of its hash blocks; `prefix(j)` is its first j blocks. A
prefix has MLA rows where `pages` holds, and a checkpoint in each of the KDA `groups`.
"""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    exact,
    have,
    lemma,
    restate,
    suppose,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.match import opened, prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, fun, list_of, named
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
from k3.proof.theorem import Theorem, Theorems

PREFIX = named("Prefix")
TABLE = fun(PREFIX, BOOL)
pages, groups = var("pages", TABLE), var("groups", list_of(TABLE))
prefix, p = var("prefix", fun(INT, PREFIX)), var("p", PREFIX)
n, m, k = (var(v, INT) for v in ("n", "m", "k"))
REGISTRY, PAGES = [pages, groups, prefix], [pages, prefix]

# every hash block up to n has its rows
HELD = recursive(
    "held",
    [pages, prefix, n],
    BOOL,
    lambda pages, prefix: TRUE,
    lambda n, rec, pages, prefix: conj(rec(pages, prefix), pages(prefix(n + 1))),
)
# every KDA group has a checkpoint of the prefix
READY = recursive(
    "ready", [p, groups], BOOL, lambda p: TRUE, lambda h, t, rec, p: conj(h(p), rec(p))
)
RESTORABLE = define(
    "restorable",
    [*REGISTRY, n],
    eq(n, 0) | conj(HELD(pages, prefix, n), READY(prefix(n), groups)),
)


def _down(n: Term, rec: Callable[..., Term], *given: Term) -> Term:
    return ite(RESTORABLE(*given, n + 1), n + 1, rec(*given))


def _down_checkpoints(n: Term, rec: Callable[..., Term], *given: Term) -> Term:
    _, groups, prefix = given
    return ite(READY(prefix(n + 1), groups), n + 1, rec(*given))


# the definition of a hit: count down from n to the first restorable boundary
LONGEST = recursive("longest", [*REGISTRY, n], INT, lambda *_: integer(0), _down)
# count down to the first boundary with all checkpoints
CHECKPOINT = recursive(
    "checkpoint", [*REGISTRY, n], INT, lambda *_: integer(0), _down_checkpoints
)


def found_is_restorable() -> Term:
    """The boundary that lookup returns is within the request, and every cache group
    can be restored there.
    """
    at = LONGEST(*REGISTRY, n)
    goal = conj(RESTORABLE(*REGISTRY, at), at >= 0, at <= n)
    return forall([*REGISTRY, n], implies(n >= 0, goal))


@lemma
def _prove_restorable() -> Thm:
    at = LONGEST(*REGISTRY, n)
    goal = conj(RESTORABLE(*REGISTRY, at), at >= 0, at <= n)
    th = by_induction(n, forall(REGISTRY, goal), defs=[LONGEST, RESTORABLE])
    return restate(found_is_restorable(), th)


def _longest_at(n: Term, m: Term) -> Term:
    given = conj(m >= 0, m <= n, RESTORABLE(*REGISTRY, m))
    return implies(given, m <= LONGEST(*REGISTRY, n))


def found_is_longest() -> Term:
    """No boundary of the request at which every group can be restored is longer."""
    return forall([*REGISTRY, n, m], implies(n >= 0, _longest_at(n, m)))


@lemma
def _prove_longest() -> Thm:
    phi = forall([*REGISTRY, m], _longest_at(n, m))
    return restate(found_is_longest(), by_induction(n, phi, defs=[LONGEST, RESTORABLE]))


def _lookup_mutants() -> Mapping[str, Term]:
    """Wrong variants of found_is_restorable and found_is_longest."""
    at = LONGEST(*REGISTRY, n)
    plain = conj(HELD(pages, prefix, m), READY(prefix(m), groups))
    least = conj(m >= 0, m <= n, READY(prefix(m), groups))
    return {
        "checkpoints alone make a boundary": forall(
            [*REGISTRY, n, m], implies(n >= 0, least, m <= at)
        ),
        "boundaries beyond the request": forall(
            [*REGISTRY, n, m], implies(conj(n >= 0, m >= 0), plain, m <= at)
        ),
    }


def _restorable_mutants() -> Mapping[str, Term]:
    at, last = LONGEST(*REGISTRY, n), CHECKPOINT(*REGISTRY, n)
    return {
        "the last checkpoint": forall(
            [*REGISTRY, n], implies(n >= 0, RESTORABLE(*REGISTRY, last))
        ),
        "never an empty hit": forall([*REGISTRY, n], implies(n >= 1, at >= 1)),
    }


tokens, block, blocks = (var(v, INT) for v in ("tokens", "block", "blocks"))


def complete_blocks() -> Term:
    """With everything kept, a request of some tokens resumes at the largest multiple of
    the hash block that is at most its length, for every block size.
    """
    held = conj(blocks * block <= tokens, tokens < (blocks + 1) * block)
    kept = HELD(*PAGES, blocks)
    ready = READY(prefix(blocks), groups)
    at = LONGEST(*REGISTRY, blocks) * block
    largest = implies(m * block <= tokens, m * block <= at)
    goal = conj(eq(at, blocks * block), at <= tokens, largest)
    given = conj(block >= 1, blocks >= 0, held, kept, ready)
    return forall([*REGISTRY, block, blocks, tokens, m], implies(given, goal))


def _at_five(*facts: Term) -> Term:
    kept = conj(HELD(*PAGES, integer(5)), READY(prefix(integer(5)), groups))
    return forall(REGISTRY, implies(kept, conj(*facts)))


FIVE = LONGEST(*REGISTRY, integer(5)) * 512
MATCHED_2800 = conj(integer(5) * 512 <= 2800, integer(2800) < integer(6) * 512)


def resumes_at_2560() -> Term:
    """2,800 matched tokens inside a physical block of 6,144 are 5 whole hash blocks of
    512; with everything kept up to there a request resumes at 2,560.
    """
    return _at_five(*MATCHED_2800.args, eq(FIVE, 2560), FIVE < 6144)


@lemma
def _kept_is_found() -> Thm:
    """If the last boundary is restorable, it is the longest."""
    given = conj(HELD(*PAGES, n), READY(prefix(n), groups))
    phi = implies(given, eq(LONGEST(*REGISTRY, n), n))
    th = by_induction(n, forall(REGISTRY, phi), defs=[LONGEST, RESTORABLE])
    return prenex(th)


@lemma
def _prove_complete() -> Thm:
    goal = complete_blocks()
    vs, body = opened(goal)
    tables, (size, count, total_, other) = vs[:3], vs[3:]
    (h,) = hyps = suppose(body.args[0])
    same = use(_kept_is_found()(count, *tables), h)
    at = LONGEST(*tables, count)
    scaled = kernel.congr(at * size, same, kernel.refl(size))
    less = suppose(other >= count + 1)
    gap = have(
        (other - count - 1) * size >= 0, _int_product(other - count - 1, size, h, *less)
    )
    end = body.args[1].args
    over = have(total_ < other * size, gap, h)
    no = kernel.ground(end[2], [over])
    more = _int_product(count - other, size, h, *suppose(~less[0].concl))
    yes = kernel.ground(end[2], [have(other * size <= at * size, more, scaled)])
    last = kernel.by_cases(less[0].concl, no, yes)
    firsts = [have(e, scaled, h) for e in end[:2]]
    return close(vs, hyps, kernel.conj_intro(*firsts, last))


@lemma
def _int_nonneg() -> Thm:
    """The product of integers ≥ 0 is ≥ 0."""
    hyps = suppose(conj(m >= 0, k >= 0))
    return close([m, k], hyps, exact(m * k >= 0, *hyps, degree=2))


def _int_product(a: Term, b: Term, *by: Thm) -> Thm:
    return use(_int_nonneg()(a, b), *by)


@lemma
def _prove_2560() -> Thm:
    vs, body = opened(resumes_at_2560())
    (h,) = suppose(body.args[0])
    same = use(_kept_is_found()(5, *vs), h)
    goals = [have(g, same) for g in body.args[1].args]
    return close(vs, [h], kernel.conj_intro(*goals))


def _2560_mutants() -> Mapping[str, Term]:
    rows = HELD(*PAGES, integer(5))
    return {
        "at the matched token": _at_five(eq(FIVE, 2800)),
        "without its checkpoint": forall(REGISTRY, implies(rows, eq(FIVE, 2560))),
    }


ALL = "all tables, prefixes, numbers of KDA groups and lengths"


def _complete_mutants() -> Mapping[str, Term]:
    """Wrong variants of complete_blocks."""
    held = conj(blocks * block <= tokens, tokens < (blocks + 1) * block)
    kept, ready = HELD(*PAGES, blocks), READY(prefix(blocks), groups)
    sizes, every = (
        conj(block >= 1, blocks >= 0, held),
        [*REGISTRY, block, blocks, tokens],
    )
    at = LONGEST(*REGISTRY, blocks) * block
    full = conj(sizes, kept, ready)
    return {
        "inside a block": forall(every, implies(full, eq(at, tokens))),
        "a checkpoint is missing": forall(
            every, implies(conj(sizes, kept), eq(at, blocks * block))
        ),
        "rows are missing": forall(
            every, implies(conj(sizes, ready), eq(at, blocks * block))
        ),
    }


THEOREMS: Theorems = {
    "found_is_restorable": Theorem(
        statement=found_is_restorable,
        proof=_prove_restorable,
        scope=ALL,
        mutants=_restorable_mutants,
    ),
    "found_is_longest": Theorem(
        statement=found_is_longest,
        proof=_prove_longest,
        scope=ALL,
        mutants=_lookup_mutants,
    ),
    "complete_blocks": Theorem(
        statement=complete_blocks,
        proof=_prove_complete,
        scope=f"{ALL}, all hash block sizes",
        mutants=_complete_mutants,
    ),
    "resumes_at_2560": Theorem(
        statement=resumes_at_2560,
        proof=_prove_2560,
        scope=f"{ALL} of which the first five hash blocks are kept",
        mutants=_2560_mutants,
    ),
}
