"""RMSNorm: every entry is bounded by its weight times √D, the whole by √D."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.analysis import SQRT, SQRT_SQUARE
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
from k3.logic.sorts import BOOL, INT, REAL, list_of
from k3.logic.syntax import (
    FALSE,
    absolute,
    conj,
    eq,
    forall,
    implies,
    integer,
    lam,
    real,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import entry, length, total
from k3.proof.reals import (
    product_nonneg,
    product_pos,
    quotient_of,
    square_nonneg,
)
from k3.proof.situ import absolute_product
from k3.proof.theorem import Theorem, Theorems

xs, i = var("xs", list_of(REAL)), var("i", INT)
x, v, w, eps = (var(name, REAL) for name in ("x", "v", "w", "eps"))
ADD, LENGTH = total(REAL), length(REAL)
SQUARES = define("squares[rms]", [xs], ADD(lam([x], x * x), xs))
WIDTH = define("width[rms]", [xs], to_real(LENGTH(xs)))
ROOT = define("root[rms]", [xs, eps], SQRT(SQUARES(xs) / WIDTH(xs) + eps))
# y = w x / sqrt(mean x² + ε), for one entry x of xs with its weight w
NORMED = define("rms_norm", [w, x, xs, eps], x / ROOT(xs, eps) * w)
AMONG = recursive(
    "among[rms]",
    [v, xs],
    BOOL,
    lambda v: FALSE,
    lambda h, t, rec, v: eq(h, v) | rec(v),
)


ENTRY = entry(REAL)(real(0), xs, i)
INSIDE = conj(i >= 0, i < LENGTH(xs), eps > 0)


def _bounded(limit: Term) -> Term:
    value = absolute(NORMED(w, ENTRY, xs, eps))
    return forall([w, xs, i, eps], implies(INSIDE, value <= absolute(w) * limit))


def entry_bound() -> Term:
    """|y_i| ≤ |w_i| √D for every entry, every width D and every ε > 0."""
    return _bounded(SQRT(WIDTH(xs)))


@lemma
def _facts() -> Thm:
    """The squares are ≥ 0 and at least each entry's; the width is ≥ 1 with an entry."""
    squares, width = ADD(lam([x], x * x), xs), to_real(LENGTH(xs))
    nonneg = conj(squares >= 0, width >= 0)
    defs = [ADD, LENGTH, AMONG]
    first = by_induction(xs, nonneg, by=[square_nonneg()], defs=defs)
    some = conj(v * v <= squares, width >= 1)
    by = [first, square_nonneg()]
    second = by_induction(xs, implies(AMONG(v, xs), some), by=by, defs=defs)
    return kernel.generalize(
        [v, xs], have(implies(AMONG(v, xs), conj(nonneg, some)), first(xs), second(xs))
    )


@lemma
def _entry_is_among() -> Thm:
    """An entry at a position within the list is one of its elements."""
    goal = implies(conj(i >= 0, i < LENGTH(xs)), AMONG(ENTRY, xs))
    defs = [entry(REAL), LENGTH, AMONG]
    return prenex(by_induction(xs, forall([i], goal), defs=defs))


@lemma
def _root() -> Thm:
    """Over some entries and ε > 0: root > 0 and D·root² = Σx² + D·ε."""
    squares, width, root = SQUARES(xs), WIDTH(xs), ROOT(xs, eps)
    inside = squares / width + eps
    hyps = suppose(conj(squares >= 0, width >= 1, eps > 0))
    mean = quotient_of(squares, width, *hyps)
    (low,) = suppose(squares / width < 0)
    product = product_pos(-(squares / width), width, low, *hyps)
    no = exact(squares / width >= 0, product, mean, *hyps)
    yes = exact(squares / width >= 0, *suppose(~low.concl))
    nonneg = kernel.by_cases(low.concl, no, yes)
    law = unfold(ROOT, xs, eps)
    square = use(SQRT_SQUARE(inside), nonneg, *hyps)
    raw = SQRT(inside)
    positive = have(raw > 0, square, nonneg, *hyps)
    scaled = kernel.congr(
        raw * raw * width, kernel.conj_elim(square, 1), kernel.refl(width)
    )
    same = kernel.congr(
        root * root * width, kernel.congr(root * root, law, law), kernel.refl(width)
    )
    goal = [
        have(root > 0, law, positive),
        exact(eq(root * root * width, squares + width * eps), same, scaled, mean),
    ]
    return close([xs, eps], hyps, kernel.conj_intro(*goal))


@lemma
def _prove_entry() -> Thm:
    squares, width, root = SQUARES(xs), WIDTH(xs), ROOT(xs, eps)
    x = ENTRY
    hyps = suppose(INSIDE)
    positive = kernel.conj_elim(hyps[0], 2)
    among = use(_entry_is_among()(xs, i), *hyps)
    laws = [unfold(SQUARES, xs), unfold(WIDTH, xs)]
    known = kernel.mp(_facts()(x, xs), among)
    facts = [
        have(squares >= 0, known, *laws),
        have(width >= 1, known, *laws),
        have(x * x <= squares, known, *laws),
    ]
    roots = use(_root()(xs, eps), *facts, positive)
    u = x / root
    whole = quotient_of(x, root, roots)
    again = kernel.congr(u * root * (u * root), whole, whole)
    (over,) = suppose(u * u > width)
    most = kernel.conj_elim(roots, 1)
    rooted = product_pos(root, root, roots)
    far = product_nonneg(u * u - width, root * root, over, rooted)
    slack = product_pos(width, eps, facts[1], positive)
    no = exact(u * u <= width, far, again, most, slack, facts[2])
    yes = exact(u * u <= width, *suppose(~over.concl))
    inside = kernel.by_cases(over.concl, no, yes)
    root_d = use(SQRT_SQUARE(width), facts[1])
    unit = _absolute_below(u, SQRT(width), inside, root_d)
    size = exact(absolute(w) <= absolute(w))
    product = absolute_product(u, w, SQRT(width), absolute(w), unit, size, root_d)
    value = NORMED(w, x, xs, eps)
    goal = absolute(value) <= absolute(w) * SQRT(width)
    th = exact(goal, product, unfold(NORMED, w, x, xs, eps))
    return close([w, xs, i, eps], hyps, th)


def _absolute_below(u: Term, q: Term, squares: Thm, root: Thm) -> Thm:
    """|u| ≤ q, from u² ≤ q² and q ≥ 0."""
    out = []
    for signed in (u, -u):
        (over,) = suppose(signed > q)
        gap = product_pos(signed - q, signed - q, over)
        more = product_nonneg(signed - q, q, over, root)
        no = exact(signed <= q, gap, more, squares, root)
        yes = exact(signed <= q, *suppose(~over.concl))
        out.append(kernel.by_cases(over.concl, no, yes))
    return exact(absolute(u) <= q, *out)


def length_below_root_width() -> Term:
    """Without weights Σ y² < D: the normalized vector is shorter than √D."""
    root = ROOT(xs, eps)
    unit = ADD(lam([x], x / root * (x / root)), xs)
    given = conj(LENGTH(xs) >= 1, eps > 0)
    return forall([xs, eps], implies(given, unit < WIDTH(xs)))


@lemma
def _prove_length() -> Thm:
    r = var("r", REAL)
    (some,) = suppose(r > 0)
    one = quotient_of(x, r, some)
    square = kernel.congr(x / r * r * (x / r * r), one, one)
    each = exact(eq(x / r * (x / r) * (r * r), x * x), square)
    each = kernel.generalize([x], each)
    unit = ADD(lam([x], x / r * (x / r)), xs)
    goal = eq(unit * (r * r), ADD(lam([x], x * x), xs))
    scaled = close([r], [some], by_induction(xs, goal, by=[each, some], defs=[ADD]))

    squares, width, root = SQUARES(xs), WIDTH(xs), ROOT(xs, eps)
    hyps = suppose(conj(LENGTH(xs) >= 1, eps > 0))
    positive = kernel.conj_elim(hyps[0], 1)
    laws = [unfold(SQUARES, xs), unfold(WIDTH, xs)]
    first = use(_entry_is_among()(xs, 0), *hyps)
    known = kernel.mp(_facts()(entry(REAL)(real(0), xs, integer(0)), xs), first)
    facts = [have(squares >= 0, known, *laws), have(width >= 1, known, *laws)]
    roots = use(_root()(xs, eps), *facts, positive)
    at = kernel.mp(scaled(root), kernel.conj_elim(roots, 0))(xs)
    unit = ADD(lam([x], x / root * (x / root)), xs)
    (over,) = suppose(unit >= width)
    far = product_nonneg(
        unit - width, root * root, over, product_pos(root, root, roots)
    )
    slack = product_pos(width, eps, facts[1], positive)
    no = exact(unit < width, far, at, slack, laws[0], kernel.conj_elim(roots, 1))
    yes = exact(unit < width, *suppose(~over.concl))
    return close([xs, eps], hyps, kernel.by_cases(over.concl, no, yes))


def _entry_mutants() -> Mapping[str, Term]:
    """Wrong variants of entry_bound."""
    return {
        "without √D": _bounded(real(1)),
        "half of √D": _bounded(SQRT(WIDTH(xs)) / 2),
    }


def _length_mutants() -> Mapping[str, Term]:
    """Wrong variants of length_below_root_width."""
    root = ROOT(xs, eps)
    unit = ADD(lam([x], x / root * (x / root)), xs)
    given = conj(LENGTH(xs) >= 1, eps > 0)
    return {"below 1": forall([xs, eps], implies(given, unit < 1))}


LONG = {
    "w": Fraction(1),
    "i": 0,
    "xs": (Fraction(4), Fraction(1), Fraction(0)),
    "eps": Fraction(1, 100),
}
ANY = "all widths, all reals, all ε > 0"
THEOREMS: Theorems = {
    "entry_bound": Theorem(
        statement=entry_bound,
        proof=_prove_entry,
        scope=ANY,
        mutants=_entry_mutants,
        hints={"without √D": LONG, "half of √D": LONG},
    ),
    "length_below_root_width": Theorem(
        statement=length_below_root_width,
        proof=_prove_length,
        scope=ANY,
        mutants=_length_mutants,
        hints={"below 1": LONG},
    ),
}
