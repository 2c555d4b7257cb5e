"""The paper's configuration: which layers are MLA, and how many."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    by_induction,
    close,
    exact,
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
from k3.logic.sorts import INT
from k3.logic.syntax import (
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

n, layers, block = (var(v, INT) for v in ("n", "layers", "block"))
a, b, c, d = (var(v, INT) for v in "abcd")

# one step of counting modulo a block
BUMP = define("bump", [block, n], ite(eq(n + 1, block), integer(0), n + 1))
# n mod block and n / block, counted up
REST = recursive(
    "rest[config]",
    [block, n],
    INT,
    lambda block: integer(0),
    lambda n, rec, block: BUMP(block, rec(block)),
)
WHOLE = recursive(
    "whole[config]",
    [block, n],
    INT,
    lambda block: integer(0),
    lambda n, rec, block: (
        rec(block) + ite(eq(REST(block, n) + 1, block), integer(1), integer(0))
    ),
)
IS_MLA = define("is_mla", [layers, n], eq(REST(integer(4), n), 0) | eq(n, layers))
# how many of the layers 1..n are MLA, in a model of so many layers
MLA_LAYERS = recursive(
    "mla_layers",
    [layers, n],
    INT,
    lambda layers: integer(0),
    lambda n, rec, layers: (
        rec(layers) + ite(IS_MLA(layers, n + 1), integer(1), integer(0))
    ),
)


@lemma
def _int_nonneg() -> Thm:
    """The product of integers ≥ 0 is ≥ 0."""
    hyps = suppose(conj(a >= 0, b >= 0))
    return close([a, b], hyps, exact(a * b >= 0, *hyps, degree=2))


@lemma
def _rest_below() -> Thm:
    """0 ≤ n mod block < block."""
    at = REST(block, n)
    phi = forall([block], implies(block >= 1, conj(at >= 0, at < block)))
    return prenex(by_induction(n, phi, defs=[REST, BUMP]))


@lemma
def whole_and_rest() -> Thm:
    """(n / block)·block + n mod block = n."""
    same = eq(WHOLE(block, n) * block + REST(block, n), n)
    th = by_induction(n, forall([block], same), defs=[WHOLE, REST, BUMP])
    return prenex(th)


@lemma
def _division_is_unique() -> Thm:
    """a·block + b = c·block + d with remainders below block gives a = c, b = d."""
    same = eq(a * block + b, c * block + d)
    (h,) = suppose(conj(b >= 0, b < block, d >= 0, d < block, same))
    ths = []
    for more in (a - c, c - a):
        (up,) = suppose(more >= 1)
        gap = use(_int_nonneg()(more - 1, block), up, h)
        no = have(more <= 0, gap, h)
        yes = have(more <= 0, *suppose(~up.concl))
        ths.append(kernel.by_cases(up.concl, no, yes))
    first = have(eq(a, c), *ths)
    scaled = kernel.congr(a * block, first, kernel.refl(block))
    goal = kernel.conj_intro(first, exact(eq(b, d), scaled, h))
    return close([block, a, b, c, d], [h], goal)


@lemma
def divided() -> Thm:
    """(a·block + b) / block = a, and the rest is b."""
    at = a * block + b
    (h,) = suppose(conj(a >= 0, b >= 0, b < block))
    product = use(_int_nonneg()(a, block), h)
    parts = use(whole_and_rest()(at, block), product, h)
    below = use(_rest_below()(at, block), product, h)
    rule = _division_is_unique()(block, WHOLE(block, at), REST(block, at), a, b)
    return close([block, a, b], [h], use(rule, parts, below, h))


def kind_by_remainder() -> Term:
    """Layer n, counted from 1, is MLA exactly when 4 divides n or it is the last: for
    n = 4a + b with 0 ≤ b < 4, exactly when b = 0 or n is the number of layers.
    """
    given = conj(a >= 0, b >= 0, b < 4)
    at = a * 4 + b
    same = eq(IS_MLA(layers, at), eq(b, 0) | eq(at, layers))
    return forall([layers, a, b], implies(given, same))


@lemma
def _prove_kind() -> Thm:
    at = a * 4 + b
    (h,) = suppose(conj(a >= 0, b >= 0, b < 4))
    rest = use(divided()(4, a, b), h)
    goal = eq(IS_MLA(layers, at), eq(b, 0) | eq(at, layers))
    th = kernel.ground(goal, [rest, unfold(IS_MLA, layers, at), h])
    return close([layers, a, b], [h], th)


def _kind_mutants() -> Mapping[str, Term]:
    at = a * 4 + b
    given = conj(a >= 0, b >= 0, b < 4)
    kind = IS_MLA(layers, at)
    return {
        "counted from 0": forall(
            [layers, a, b], implies(given, eq(kind, eq(b, 3) | eq(at, layers)))
        ),
        "the last one like the others": forall(
            [layers, a, b], implies(given, eq(kind, eq(b, 0)))
        ),
    }


def layer_counts() -> Term:
    """Of 4a + b layers with 0 ≤ b < 4, a are MLA, and one more if b is not 0."""
    given = conj(a >= 0, b >= 0, b < 4)
    at = a * 4 + b
    extra = ite(eq(b, 0), integer(0), integer(1))
    return forall([a, b], implies(given, eq(MLA_LAYERS(at, at), a + extra)))


@lemma
def _counted() -> Thm:
    """Up to layer n there are n / 4 MLA layers, and the last one if it is not one."""
    last = conj(eq(n, layers), ~eq(REST(integer(4), n), 0))
    value = WHOLE(integer(4), n) + ite(last, integer(1), integer(0))
    phi = implies(n <= layers, eq(MLA_LAYERS(layers, n), value))
    below = [_rest_below()]
    defs = [MLA_LAYERS, IS_MLA, WHOLE, REST, BUMP]
    return prenex(by_induction(n, forall([layers], phi), by=below, defs=defs))


@lemma
def _prove_counts() -> Thm:
    at = a * 4 + b
    (h,) = suppose(conj(a >= 0, b >= 0, b < 4))
    counted = use(_counted()(at, at), have(at >= 0, h))
    parts = use(divided()(4, a, b), h)
    extra = ite(eq(b, 0), integer(0), integer(1))
    goal = eq(MLA_LAYERS(at, at), a + extra)
    return close([a, b], [h], kernel.ground(goal, [counted, parts, h]))


def _counts_mutants() -> Mapping[str, Term]:
    given = conj(a >= 0, b >= 0, b < 4)
    at = a * 4 + b
    value = MLA_LAYERS(at, at)
    return {
        "the last layer not counted": forall([a, b], implies(given, eq(value, a))),
        "the last layer counted twice": forall(
            [a, b], implies(given, eq(value, a + 1))
        ),
    }


THEOREMS: Theorems = {
    "kind_by_remainder": Theorem(
        statement=kind_by_remainder,
        proof=_prove_kind,
        scope="all layer numbers, models of any depth",
        mutants=_kind_mutants,
    ),
    "layer_counts": Theorem(
        statement=layer_counts,
        proof=_prove_counts,
        scope="models of any depth",
        mutants=_counts_mutants,
    ),
}
