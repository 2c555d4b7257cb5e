"""Per-head Muon: what an orthogonalizer gives each head, the merged matrix has."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from k3.logic import kernel
from k3.logic.auto import close, exact, have, lemma, suppose, unfold, use
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, Sort, fun, list_of
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    implies,
    ite,
    lam,
    nil,
    real,
    var,
)
from k3.logic.terms import Symbol, Term
from k3.proof.lists import snoc
from k3.proof.muon import COLUMN, HEAD, integer_product, prove_injective, prove_split
from k3.proof.sums import sigma
from k3.proof.theorem import Theorem, Theorems

ROW = list_of(REAL)
MATRIX = fun(INT, INT, REAL)
# the entries of a head's output, from its number and its block of the input
METHOD = fun(INT, list_of(ROW), INT, INT, REAL)
method, matrix = var("method", METHOD), var("matrix", MATRIX)
rows, width, head = (var(v, INT) for v in ("rows", "width", "head"))
row, flat, left, right = (var(v, INT) for v in ("row", "flat", "left", "right"))
epsilon = var("epsilon", REAL)
GIVEN = [method, matrix, rows, width]


@cache
def _listed(element: Sort) -> Symbol:
    """f(0), ..., f(n - 1) as a list."""
    f, n = var("f", fun(INT, element)), var("n", INT)
    return recursive(
        f"listed[{element}]",
        [f, n],
        list_of(element),
        lambda f: nil(element),
        lambda n, rec, f: snoc(element)(rec(f), f(n)),
    )


# the columns head·width, ..., head·width + width - 1 of a matrix
SPLIT = define(
    "split",
    [matrix, rows, width, head],
    _listed(ROW)(
        lam(
            [row],
            _listed(REAL)(lam([left], matrix(row, head * width + left)), width),
        ),
        rows,
    ),
)
# split into heads, each head orthogonalized, merged: the entry of a flat column
ORTHOGONALIZED = define(
    "orthogonalized",
    [*GIVEN, row, flat],
    method(
        HEAD(width, flat),
        SPLIT(matrix, rows, width, HEAD(width, flat)),
        row,
        COLUMN(width, flat),
    ),
)


def _of_head(row: Term, column: Term) -> Term:
    """An entry of what the method gives for a head."""
    return method(head, SPLIT(matrix, rows, width, head), row, column)


def _merged(row: Term, flat: Term) -> Term:
    return ORTHOGONALIZED(*GIVEN, row, flat)


def _inside(*columns: Term) -> Term:
    return conj(head >= 0, *(conj(c >= 0, c < width) for c in columns))


def _split_again(flat: Term, inside: Term) -> Term:
    same = eq(_merged(row, flat), _of_head(row, left))
    return forall([*GIVEN, head, row, left], implies(inside, same))


def split_orthogonalize() -> Term:
    """Column c of head h of the merged matrix is column c of the method's output for
    head h, which sees the columns of that head and no others.
    """
    return _split_again(head * width + left, _inside(left))


@lemma
def _prove_split_again() -> Thm:
    hyps = suppose(_inside(left))
    flat = head * width + left
    positive = have(width > 0, *hyps)
    product = integer_product(head, width, *hyps)
    natural = exact(flat >= 0, product, *hyps)
    parts = use(prove_split()(width, flat), positive, natural)
    h, c = HEAD(width, flat), COLUMN(width, flat)
    same = use(prove_injective()(width, h, c, head, left), parts, *hyps)
    heads, columns = (kernel.conj_elim(same, i) for i in (0, 1))
    kept = [kernel.refl(v) for v in (matrix, rows, width)]
    block = kernel.congr(SPLIT(matrix, rows, width, h), *kept, heads)
    law = unfold(ORTHOGONALIZED, *GIVEN, row, flat)
    outer = [kernel.refl(method), heads, block, kernel.refl(row), columns]
    th = kernel.trans(law, kernel.congr(law.concl.args[1], *outer))
    return close([*GIVEN, head, row, left], hyps, th)


def _gram_of_head() -> Term:
    return sigma(rows, _of_head(row, left) * _of_head(row, right), row)


def _gram_merged(second: Term = right) -> Term:
    columns = (_merged(row, head * width + c) for c in (left, second))
    return sigma(rows, next(columns) * next(columns), row)


@lemma
def _prove_same_gram() -> Thm:
    """Under [head and columns are there]: the two Gram entries are the same."""
    hyps = suppose(_inside(left, right))
    again = _prove_split_again()
    entries = [use(again(*GIVEN, head, row, column), *hyps) for column in (left, right)]
    whole = _gram_merged()
    product = _merged(row, head * width + left) * _merged(row, head * width + right)
    inner = kernel.abstract([row], kernel.congr(product, *entries))
    th = kernel.congr(whole, inner, kernel.refl(rows))
    return close([*GIVEN, head, left, right], hyps, th)


IDENTITY = ite(eq(left, right), real(1), real(0))
EVERY = [*GIVEN, head, left, right]


def _transfers(given: Term, then: Term, *more: Term) -> Term:
    inside = _inside(left, right)
    return forall([*EVERY, *more], implies(conj(inside, given), then))


def exact_gram_transfers() -> Term:
    """If the method's output for a head has the Gram entry of orthonormal columns, for
    any two columns of it, then so has the merged matrix at these columns of the head.
    """
    return _transfers(eq(_gram_of_head(), IDENTITY), eq(_gram_merged(), IDENTITY))


@lemma
def _prove_exact() -> Thm:
    hyps = suppose(conj(_inside(left, right), eq(_gram_of_head(), IDENTITY)))
    same = use(_prove_same_gram()(*EVERY), *hyps)
    given = kernel.conj_elim(hyps[0], 1)
    return close(EVERY, hyps, kernel.trans(same, given))


def _near(gram: Term, most: Term) -> Term:
    return absolute(gram - IDENTITY) <= most


def approximate_gram_transfers() -> Term:
    """If a Gram entry of the method's output for a head is within ε of that of
    orthonormal columns, then so is the merged matrix's at these columns of the head.
    """
    given, then = (_near(g, epsilon) for g in (_gram_of_head(), _gram_merged()))
    return _transfers(given, then, epsilon)


@lemma
def _prove_approximate() -> Thm:
    given, then = (_near(g, epsilon) for g in (_gram_of_head(), _gram_merged()))
    hyps = suppose(conj(_inside(left, right), given))
    same = use(_prove_same_gram()(*EVERY), *hyps)
    return close([*EVERY, epsilon], hyps, exact(then, same, *hyps))


def _split_mutants() -> Mapping[str, Term]:
    """Wrong variants of split_orthogonalize."""
    there, flat = _inside(left), head * width + left
    loose = conj(head >= 0, conj(left >= 0, left <= width))
    return {
        "the next column": _split_again(flat + 1, there),
        "heads and columns exchanged": _split_again(left * width + head, there),
        "one column too many": _split_again(flat, loose),
    }


def _exact_mutants() -> Mapping[str, Term]:
    """Wrong variants of exact_gram_transfers."""
    given, one = eq(_gram_of_head(), IDENTITY), real(1)
    return {
        "a column of the next": _transfers(
            given, eq(_gram_merged(right + 1), IDENTITY)
        ),
        "every entry is one": _transfers(given, eq(_gram_merged(), one)),
    }


def _approximate_mutants() -> Mapping[str, Term]:
    """Wrong variants of approximate_gram_transfers."""
    given = _near(_gram_of_head(), epsilon)
    half = _near(_gram_merged(), epsilon / 2)
    strict = absolute(_gram_merged() - IDENTITY) < epsilon
    return {
        "half the error": _transfers(given, half, epsilon),
        "strict for weak inequality": _transfers(given, strict, epsilon),
    }


SCOPE = "all methods, all matrices, all head widths, all heads and columns"
ONE_ROW = {"rows": 1, "width": 2, "head": 0, "left": 0, "right": 0}
THEOREMS: Theorems = {
    "split_orthogonalize": Theorem(
        statement=split_orthogonalize,
        proof=_prove_split_again,
        scope=SCOPE,
        mutants=_split_mutants,
    ),
    "exact_gram_transfers": Theorem(
        statement=exact_gram_transfers,
        proof=_prove_exact,
        scope=SCOPE,
        mutants=_exact_mutants,
        hints={
            "a column of the next": {
                **ONE_ROW,
                "method": lambda head, block, row, column: Fraction(1 - column),
            }
        },
    ),
    "approximate_gram_transfers": Theorem(
        statement=approximate_gram_transfers,
        proof=_prove_approximate,
        scope=SCOPE,
        mutants=_approximate_mutants,
        hints={
            name: {
                **ONE_ROW,
                "epsilon": Fraction(1),
                "method": lambda head, block, row, column: Fraction(0),
            }
            for name in ("half the error", "strict for weak inequality")
        },
    ),
}
