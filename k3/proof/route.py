"""Router scores: mixture weights, common offsets, and rounding."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    close,
    exact,
    have,
    lemma,
    list_induction,
    parts,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, list_of
from k3.logic.syntax import (
    absolute,
    conj,
    cons,
    eq,
    forall,
    implies,
    lam,
    nil,
    var,
)
from k3.logic.terms import Term, subst
from k3.proof.lists import total
from k3.proof.reals import quotient_of
from k3.proof.theorem import Theorem, Theorems

scores, score = var("scores", list_of(REAL)), var("score", REAL)
offset, gap = var("offset", REAL), var("gap", REAL)
s, t, s2, t2 = (var(v, REAL) for v in ("s", "t", "s'", "t'"))


def _sum(value: Term) -> Term:
    return total(REAL)(lam([score], value), scores)


def weights_sum_to_one() -> Term:
    """Scores divided by their sum add up to 1, if the sum is not 0."""
    shares = _sum(score / _sum(score))
    return forall([scores], implies(~eq(_sum(score), 0), eq(shares, 1)))


@lemma
def _prove_weights() -> Thm:
    r = var("r", REAL)
    hyps = suppose(~eq(r, 0))
    whole = kernel.generalize([score], quotient_of(score, r, *hyps))
    goal = eq(_sum(score / r) * r, _sum(score))

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        add = total(REAL)
        laws = [at_next(add, h, tail, lam([score], v)) for v in (score / r, score)]
        scaled = kernel.congr(
            add(lam([score], score / r), cons(h, tail)) * r, laws[0], kernel.refl(r)
        )
        at = subst(goal, {scores: cons(h, tail)})
        return exact(at, scaled, laws[1], smaller, whole(h))

    base = auto(subst(goal, {scores: nil(REAL)}), defs=[total(REAL)])
    every = close([r], hyps, list_induction(scores, goal, base, step))
    (some,) = suppose(~eq(_sum(score), 0))
    at = kernel.mp(every(_sum(score)), some)(scores)
    shares = _sum(score / _sum(score))
    from_product = have(eq(shares, 1), at, some)
    return close([scores], [some], from_product)


def common_offset_keeps_order() -> Term:
    """Adding one offset to all scores keeps every comparison of two experts."""
    u, v = var("i", INT), var("j", INT)
    plain = (s > t) | conj(eq(s, t), u <= v)
    moved = (s + offset > t + offset) | conj(eq(s + offset, t + offset), u <= v)
    return forall([s, t, u, v, offset], eq(plain, moved))


@lemma
def _prove_offset() -> Thm:
    statement = common_offset_keeps_order()
    return auto(statement)


def _stable(limit: Term) -> Term:
    near = conj(absolute(s2 - s) <= gap, absolute(t2 - t) <= gap, s - t > limit)
    return forall([s, t, s2, t2, gap], implies(near, s2 > t2))


def rounding_keeps_order() -> Term:
    """Scores more than 2ε apart keep their order under errors of at most ε."""
    return _stable(gap * 2)


@lemma
def _prove_stable() -> Thm:
    near = conj(absolute(s2 - s) <= gap, absolute(t2 - t) <= gap, s - t > gap * 2)
    hyps = suppose(near)
    return close([s, t, s2, t2, gap], hyps, exact(s2 > t2, *parts(hyps[0])))


def _offset_mutants() -> Mapping[str, Term]:
    """Wrong variants of common_offset_keeps_order."""
    u, v = var("i", INT), var("j", INT)

    def above(a: Term, b: Term, tie: Term) -> Term:
        return (a > b) | conj(eq(a, b), tie)

    plain, every = above(s, t, u <= v), [s, t, u, v, offset]
    moved = above(s + offset, t + offset, v <= u)
    return {
        "an offset to one score": forall(
            every, eq(plain, above(s + offset, t, u <= v))
        ),
        "ties to the higher index": forall(every, eq(plain, moved)),
    }


THEOREMS: Theorems = {
    "weights_sum_to_one": Theorem(
        statement=weights_sum_to_one,
        proof=_prove_weights,
        scope="all numbers of selected experts, all real scores whose sum is not 0",
        mutants=lambda: {
            "a sum of zero": forall([scores], eq(_sum(score / _sum(score)), 1))
        },
        hints={"a sum of zero": {"scores": ()}},
    ),
    "common_offset_keeps_order": Theorem(
        statement=common_offset_keeps_order,
        proof=_prove_offset,
        scope="all real scores and offsets",
        mutants=_offset_mutants,
    ),
    "rounding_keeps_order": Theorem(
        statement=rounding_keeps_order,
        proof=_prove_stable,
        scope="all real scores, all errors",
        mutants=lambda: {"a gap of ε": _stable(gap)},
    ),
}
