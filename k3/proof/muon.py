"""Per-head Muon: splitting a matrix into heads and merging it loses nothing."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import by_induction, close, exact, have, lemma, suppose
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT
from k3.logic.syntax import conj, eq, forall, implies, integer, ite, var
from k3.logic.terms import Term
from k3.proof.theorem import Theorem, Theorems

width, flat = var("width", INT), var("flat", INT)
head, column = var("head", INT), var("column", INT)
other, elsewhere = var("other", INT), var("elsewhere", INT)
EVERY = [width, head, column, other, elsewhere]

# the column inside the head, and the head, of a flat column number
COLUMN = recursive(
    "column",
    [width, flat],
    INT,
    lambda width: integer(0),
    lambda n, rec, width: ite(eq(rec(width) + 1, width), integer(0), rec(width) + 1),
)
HEAD = recursive(
    "head",
    [width, flat],
    INT,
    lambda width: integer(0),
    lambda n, rec, width: ite(
        eq(COLUMN(width, n) + 1, width), rec(width) + 1, rec(width)
    ),
)


def _inside(c: Term) -> Term:
    return conj(c >= 0, c < width)


def _distinct(inside: Term) -> Term:
    there = eq(head * width + column, other * width + elsewhere)
    same = conj(eq(head, other), eq(column, elsewhere))
    return forall(EVERY, implies(conj(inside, there), same))


def merge_is_injective() -> Term:
    """Two (head, column) pairs with one flat column are the same pair."""
    return _distinct(conj(_inside(column), _inside(elsewhere)))


@lemma
def prove_injective() -> Thm:
    """The pairs are the same, for what is merged."""
    there = eq(head * width + column, other * width + elsewhere)
    hyps = suppose(conj(conj(_inside(column), _inside(elsewhere)), there))
    order = []
    for a, b in ((head, other), (other, head)):
        more = suppose(a > b)
        gap = exact((a - b - 1) >= 0, have(a - b - 1 >= 0, *more))
        far = integer_product(a - b - 1, width, gap, *hyps)
        no = exact(a <= b, far, *hyps)
        order.append(kernel.by_cases(a > b, no, exact(a <= b, *suppose(~(a > b)))))
    heads = exact(eq(head, other), *order)
    product = kernel.congr(head * width, heads, kernel.refl(width))
    columns = exact(eq(column, elsewhere), product, *hyps)
    return close(EVERY, hyps, kernel.conj_intro(heads, columns))


def integer_product(a: Term, b: Term, *by: Thm) -> Thm:
    """ab ≥ 0 for integers a ≥ 0 and b ≥ 0 that follow from these facts."""
    signs = [have(a >= 0, *by), have(b >= 0, *by)]
    return exact(a * b >= 0, *signs, degree=2)


def split_then_merge() -> Term:
    """Every flat column is head·width + column, with the column inside its head."""
    c, h = COLUMN(width, flat), HEAD(width, flat)
    whole = conj(_inside(c), h >= 0, eq(h * width + c, flat))
    return forall([width, flat], implies(conj(width > 0, flat >= 0), whole))


@lemma
def prove_split() -> Thm:
    """Column and head of a flat column, for what is merged."""
    (wide,) = suppose(width > 0)
    c, h = COLUMN(width, flat), HEAD(width, flat)
    inside = by_induction(flat, _inside(c), by=[wide], defs=[COLUMN])
    positive = by_induction(flat, h >= 0, defs=[HEAD])
    whole = by_induction(flat, eq(h * width + c, flat), defs=[COLUMN, HEAD])
    hyps = suppose(conj(width > 0, flat >= 0))
    natural = kernel.conj_elim(hyps[0], 1)
    facts = [kernel.mp(th(flat), natural) for th in (inside, positive, whole)]
    th = kernel.conj_intro(*facts)
    th = kernel.mp(kernel.discharge(wide.concl, th), kernel.conj_elim(hyps[0], 0))
    return close([width, flat], hyps, th)


def _mutants() -> Mapping[str, Term]:
    wide = conj(column >= 0, elsewhere >= 0)
    loose = conj(conj(column >= 0, column <= width), _inside(elsewhere))
    return {
        "columns outside their head": _distinct(wide),
        "one column too many": _distinct(loose),
    }


def _merge_mutants() -> Mapping[str, Term]:
    """Wrong variants of split_then_merge."""
    c, h = COLUMN(width, flat), HEAD(width, flat)
    given = conj(width > 0, flat >= 0)
    return {
        "head and column exchanged": forall(
            [width, flat], implies(given, eq(c * width + h, flat))
        ),
        "columns count from 1": forall([width, flat], implies(given, c >= 1)),
        "one head more": forall(
            [width, flat], implies(given, eq((h + 1) * width + c, flat))
        ),
    }


THEOREMS: Theorems = {
    "merge_is_injective": Theorem(
        statement=merge_is_injective,
        proof=prove_injective,
        scope="all head widths, all heads and columns",
        mutants=_mutants,
    ),
    "split_then_merge": Theorem(
        statement=split_then_merge,
        proof=prove_split,
        scope="all positive head widths, all flat columns",
        mutants=_merge_mutants,
    ),
}
