"""Microscaling blocks: scale choice, dot products, and errors of whole sums."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    exact,
    lemma,
    list_induction,
    restate,
    rewritten,
    suppose,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, list_of, pair_of
from k3.logic.syntax import (
    absolute,
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    integer,
    ite,
    lam,
    nil,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import total
from k3.proof.mx import E2M1, LAWS, prove_block, scale, x
from k3.proof.reals import product_nonneg
from k3.proof.situ import absolute_product
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems

n, least, largest = var("n", INT), var("least", REAL), var("largest", REAL)
DOUBLED = recursive(  # least · 2^n
    "doubled",
    [least, n],
    REAL,
    lambda least: least,
    lambda n, rec, least: rec(least) * 2,
)
CODE = recursive(  # the first code up to n whose scale covers the largest value
    "scale_code",
    [least, largest, n],
    INT,
    lambda least, largest: integer(0),
    lambda n, rec, least, largest: ite(
        largest <= DOUBLED(least, n) * 6, rec(least, largest), n + 1
    ),
)
CHOSEN = CODE(least, largest, n)


def _chosen(covered: Term) -> Term:
    given = conj(least > 0, n >= 0, largest <= DOUBLED(least, n) * 6)
    return forall([least, largest, n], implies(given, covered))


def chosen_scale_covers_block() -> Term:
    """The scale code that is searched from below covers the block: |x| ≤ 6 s for its
    largest |x|, if the largest code does; and it is one of the codes.
    """
    covered = largest <= DOUBLED(least, CHOSEN) * 6
    return _chosen(conj(covered, CHOSEN >= 0, CHOSEN <= n))


@lemma
def _prove_chosen() -> Thm:
    covered = largest <= DOUBLED(least, CHOSEN) * 6
    goal = implies(
        largest <= DOUBLED(least, n) * 6, conj(covered, CHOSEN >= 0, CHOSEN <= n)
    )
    (positive,) = suppose(least > 0)
    th = by_induction(n, goal, by=[positive], defs=[CODE, DOUBLED])
    th = close([least, largest], [positive], th)
    statement = chosen_scale_covers_block()
    hyps = suppose(conj(least > 0, n >= 0, largest <= DOUBLED(least, n) * 6))
    facts = [kernel.conj_elim(hyps[0], i) for i in range(3)]
    at = kernel.mp(th(least, largest), facts[0])(n)
    at = kernel.mp(kernel.mp(at, facts[1]), facts[2])
    return restate(statement, close([least, largest, n], hyps, at))


PAIR = pair_of(REAL, REAL)
codes, code = var("codes", list_of(PAIR)), var("code", PAIR)
s, t = var("s", REAL), var("t", REAL)


def _dot(codes: Term, value: Term) -> Term:
    return total(PAIR)(lam([code], value), codes)


def scales_factor_out_of_dot() -> Term:
    """The dot product of two blocks is the product of their scales times the dot
    product of their codes.
    """
    decoded = _dot(codes, s * fst(code) * (t * snd(code)))
    plain = _dot(codes, fst(code) * snd(code))
    return forall([s, t, codes], eq(decoded, s * t * plain))


@lemma
def _prove_factor() -> Thm:
    def at(codes: Term) -> Term:
        decoded = _dot(codes, s * fst(code) * (t * snd(code)))
        return eq(decoded, s * t * _dot(codes, fst(code) * snd(code)))

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        bodies = (s * fst(code) * (t * snd(code)), fst(code) * snd(code))
        laws = [at_next(total(PAIR), h, tail, lam([code], b)) for b in bodies]
        return rewritten(at(cons(h, tail)), laws, smaller)

    base = auto(at(nil(PAIR)), defs=[total(PAIR)])
    th = list_induction(codes, at(codes), base, step)
    return restate(scales_factor_out_of_dot(), kernel.generalize([s, t], th))


TERM = pair_of(REAL, pair_of(REAL, REAL))  # (input, (weight, scale of its block))
terms, term = var("terms", list_of(TERM)), var("term", TERM)
INPUT, WEIGHT, SCALE = fst(term), fst(snd(term)), snd(snd(term))
DECODED = SCALE * E2M1(WEIGHT / SCALE)
COVERED = conj(SCALE > 0, absolute(WEIGHT) <= SCALE * 6)


def _sum(value: Term, terms: Term) -> Term:
    return total(TERM)(lam([term], value), terms)


def _vector_error(most: Term) -> Term:
    covered = every(TERM)(lam([term], COVERED), terms)
    error = absolute(_sum(INPUT * DECODED, terms) - _sum(INPUT * WEIGHT, terms))
    return forall([terms], implies(covered, error <= _sum(most, terms)))


def quantized_sum_error() -> Term:
    """Σ x·ŵ differs from Σ x·w by at most Σ |x|·s, if every weight is covered by the
    scale of its block.
    """
    return _vector_error(absolute(INPUT) * SCALE)


@lemma
def _prove_vector_error() -> Thm:
    bodies = [INPUT * DECODED, INPUT * WEIGHT, absolute(INPUT) * SCALE]
    cover = lam([term], COVERED)

    def at(terms: Term) -> Term:
        wrong, right, most = (_sum(b, terms) for b in bodies)
        goal = absolute(wrong - right) <= most
        return implies(every(TERM)(cover, terms), goal)

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        whole = cons(h, tail)
        (given,) = suppose(every(TERM)(cover, whole))
        both = kernel.eq_mp(at_next(every(TERM), h, tail, cover), given)
        own, rest = (kernel.conj_elim(both, i) for i in (0, 1))
        value, weight, size = fst(h), fst(snd(h)), snd(snd(h))
        error = kernel.mp(prove_block()(size, weight), own)
        change = size * E2M1(weight / size) - weight
        first = absolute_product(
            value,
            change,
            absolute(value),
            size,
            exact(absolute(value) <= absolute(value)),
            error,
        )
        laws = [at_next(total(TERM), h, tail, lam([term], b)) for b in bodies]
        facts = [kernel.mp(smaller, rest), first]
        th = rewritten(at(whole).args[1], laws, *facts)
        return kernel.discharge(given.concl, th)

    base = auto(at(nil(TERM)), defs=[total(TERM), every(TERM)])
    return restate(quantized_sum_error(), list_induction(terms, at(terms), base, step))


def decoded_at_most_six_scales() -> Term:
    """A decoded value is at most 6 s in absolute value."""
    size = absolute(scale * E2M1(x)) <= scale * 6
    return forall([scale, x], implies(scale >= 0, size))


@lemma
def _prove_six() -> Thm:
    hyps = suppose(scale >= 0)
    limit = kernel.ground(absolute(E2M1(x)) <= 6, LAWS)
    sides = [
        product_nonneg(scale, real(6) + i * E2M1(x), limit, *hyps) for i in (1, -1)
    ]
    goal = absolute(scale * E2M1(x)) <= scale * 6
    return close([scale, x], hyps, exact(goal, *sides))


def _mutants() -> Mapping[str, Term]:
    covered = largest <= DOUBLED(least, CHOSEN) * 4
    return {"four for six": _chosen(covered)}


AT = {"terms": ((Fraction(1), (Fraction(5), Fraction(1))),)}
ALL = "all lengths, all reals"


def _factor_mutants() -> Mapping[str, Term]:
    """Wrong variants of scales_factor_out_of_dot."""
    decoded = _dot(codes, s * fst(code) * (t * snd(code)))
    plain, every_ = _dot(codes, fst(code) * snd(code)), [s, t, codes]
    return {
        "one scale is missing": forall(every_, eq(decoded, s * plain)),
        "the scales are added": forall(every_, eq(decoded, (s + t) * plain)),
    }


THEOREMS: Theorems = {
    "chosen_scale_covers_block": Theorem(
        statement=chosen_scale_covers_block,
        proof=_prove_chosen,
        scope="all numbers of codes, all positive least scales, all largest values",
        mutants=_mutants,
        hints={"four for six": {"least": Fraction(1), "largest": Fraction(5), "n": 1}},
    ),
    "scales_factor_out_of_dot": Theorem(
        statement=scales_factor_out_of_dot,
        proof=_prove_factor,
        scope=ALL,
        mutants=_factor_mutants,
    ),
    "quantized_sum_error": Theorem(
        statement=quantized_sum_error,
        proof=_prove_vector_error,
        scope=ALL + ", every weight covered by its scale",
        mutants=lambda: {"half the scale": _vector_error(absolute(INPUT) * SCALE / 2)},
        hints={"half the scale": AT},
    ),
    "decoded_at_most_six_scales": Theorem(
        statement=decoded_at_most_six_scales,
        proof=_prove_six,
        scope="all scales ≥ 0, all reals",
        mutants=lambda: {
            "five scales": forall(
                [scale, x],
                implies(scale >= 0, absolute(scale * E2M1(x)) <= scale * 5),
            )
        },
        hints={"five scales": {"scale": Fraction(1), "x": Fraction(7)}},
    ),
}
