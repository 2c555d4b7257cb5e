"""AttnRes: how many sources there are, and what they add up to."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import by_induction, close, have, lemma, restate, suppose
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import conj, eq, forall, implies, integer, ite, real, var
from k3.logic.terms import Term
from k3.proof.sums import SUM
from k3.proof.theorem import Theorem, Theorems

block, layers = var("block", INT), var("layers", INT)
output = var("output", fun(INT, REAL))

# layers in the block that is not complete yet, and blocks that are
PARTIAL = recursive(
    "partial_size",
    [block, layers],
    INT,
    lambda block: integer(0),
    lambda n, rec, block: ite(eq(rec(block) + 1, block), integer(0), rec(block) + 1),
)
COMPLETED = recursive(
    "completed",
    [block, layers],
    INT,
    lambda block: integer(0),
    lambda n, rec, block: ite(
        eq(PARTIAL(block, n) + 1, block), rec(block) + 1, rec(block)
    ),
)
# what the incomplete block holds, and what all completed blocks hold together
PARTIAL_SUM = recursive(
    "partial_sum",
    [block, output, layers],
    REAL,
    lambda block, output: real(0),
    lambda n, rec, block, output: ite(
        eq(PARTIAL(block, n) + 1, block), real(0), rec(block, output) + output(n)
    ),
)
COMPLETED_SUM = recursive(
    "completed_sum",
    [block, output, layers],
    REAL,
    lambda block, output: real(0),
    lambda n, rec, block, output: ite(
        eq(PARTIAL(block, n) + 1, block),
        rec(block, output) + PARTIAL_SUM(block, output, n) + output(n),
        rec(block, output),
    ),
)


def partial_block_is_smaller() -> Term:
    """The incomplete block always holds fewer layers than a block."""
    size = PARTIAL(block, layers)
    inside = conj(size >= 0, size < block)
    return forall([block, layers], implies(conj(block > 0, layers >= 0), inside))


@lemma
def prove_smaller() -> Thm:
    """The size of the incomplete block."""
    (positive,) = suppose(block > 0)
    size = PARTIAL(block, layers)
    inside = conj(size >= 0, size < block)
    th = by_induction(layers, inside, by=[positive], defs=[PARTIAL])
    return restate(partial_block_is_smaller(), close([block], [positive], th))


def _counted(most: Term) -> Term:
    whole = COMPLETED(block, layers) * block + PARTIAL(block, layers)
    return forall([block, layers], implies(layers >= 0, eq(whole, most)))


def blocks_and_partial_are_all_layers() -> Term:
    """Completed blocks times the block size plus the incomplete block is all layers."""
    return _counted(layers)


@lemma
def _prove_counted() -> Thm:
    whole = COMPLETED(block, layers) * block + PARTIAL(block, layers)
    defs = [PARTIAL, COMPLETED]
    th = by_induction(layers, eq(whole, layers), defs=defs)
    return restate(blocks_and_partial_are_all_layers(), kernel.generalize([block], th))


def released_sources() -> Term:
    """Blocks of 12: after 93 layers 7 blocks are complete and 9 layers wait, so with
    the embedding the last query has 9 sources.
    """
    done, rest = COMPLETED(integer(12), integer(93)), PARTIAL(integer(12), integer(93))
    return conj(eq(done, 7), eq(rest, 9))


@lemma
def _prove_released() -> Thm:
    smaller = prove_smaller()(12, 93)
    inside = kernel.mp(smaller, have(smaller.concl.args[0]))
    counted = _prove_counted()(12, 93)
    whole = kernel.mp(counted, have(counted.concl.args[0]))
    return kernel.ground(released_sources(), [inside, whole])


def sources_sum_to_residual() -> Term:
    """Completed blocks and the incomplete one add up to the plain residual sum."""
    parts = COMPLETED_SUM(block, output, layers) + PARTIAL_SUM(block, output, layers)
    every = [block, output, layers]
    return forall(every, implies(layers >= 0, eq(parts, SUM(output, layers))))


@lemma
def _prove_sources() -> Thm:
    parts = COMPLETED_SUM(block, output, layers) + PARTIAL_SUM(block, output, layers)
    goal = forall([block, output], eq(parts, SUM(output, layers)))
    defs = [PARTIAL_SUM, COMPLETED_SUM, SUM]
    return restate(sources_sum_to_residual(), by_induction(layers, goal, defs=defs))


def _sum_mutants() -> Mapping[str, Term]:
    every = [block, output, layers]
    done = COMPLETED_SUM(block, output, layers)
    goal = implies(layers >= 0, eq(done, SUM(output, layers)))
    return {"without the incomplete block": forall(every, goal)}


ALL = "all block sizes, all numbers of layers"


def _partial_mutants() -> Mapping[str, Term]:
    """Wrong variants of partial_block_is_smaller."""
    size = PARTIAL(block, layers)
    given = conj(block > 0, layers >= 0)
    return {
        "never empty": forall([block, layers], implies(given, size > 0)),
        "smaller by two": forall([block, layers], implies(given, size < block - 1)),
        "blocks of size 0": forall([block, layers], implies(layers >= 0, size < block)),
    }


def _released_mutants() -> Mapping[str, Term]:
    """Wrong variants of released_sources."""
    return {
        "the twelfth layer completes nothing": eq(
            COMPLETED(integer(12), integer(12)), 0
        ),
        "a complete block still waits": eq(PARTIAL(integer(12), integer(12)), 12),
    }


THEOREMS: Theorems = {
    "partial_block_is_smaller": Theorem(
        statement=partial_block_is_smaller,
        proof=prove_smaller,
        scope=ALL,
        mutants=_partial_mutants,
    ),
    "blocks_and_partial_are_all_layers": Theorem(
        statement=blocks_and_partial_are_all_layers,
        proof=_prove_counted,
        scope=ALL,
        mutants=lambda: {"one layer more": _counted(layers + 1)},
    ),
    "released_sources": Theorem(
        statement=released_sources,
        proof=_prove_released,
        scope="the released sizes",
        mutants=_released_mutants,
    ),
    "sources_sum_to_residual": Theorem(
        statement=sources_sum_to_residual,
        proof=_prove_sources,
        scope=ALL + ", all outputs",
        mutants=_sum_mutants,
    ),
}
