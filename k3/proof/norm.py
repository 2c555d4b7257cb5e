"""Norms: Cauchy–Schwarz, Minkowski, and unit vectors, for every width."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.analysis import SQRT, SQRT_SQUARE
from k3.logic.auto import (
    at_next,
    auto,
    by_induction,
    close,
    exact,
    have,
    lemma,
    list_induction,
    restate,
    rewritten,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of, pair_of
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    lam,
    nil,
    real,
    snd,
    var,
)
from k3.logic.terms import Term, subst
from k3.proof.lists import total
from k3.proof.reals import product_nonneg, product_pos, quotient_of, square_nonneg
from k3.proof.theorem import Theorem, Theorems

PAIR = pair_of(REAL, REAL)
pairs, pair, t = var("pairs", list_of(PAIR)), var("pair", PAIR), var("t", REAL)


def _bodies() -> list[Term]:
    x, y = fst(pair), snd(pair)
    return [lam([pair], v) for v in (x * x, y * y, x * y, (x + y) * (x + y))]


def _sums(pairs: Term) -> tuple[Term, Term, Term, Term]:
    """Σ x², Σ y², Σ xy and Σ (x + y)² over pairs (x, y)."""
    xx, yy, xy, both = (total(PAIR)(each, pairs) for each in _bodies())
    return xx, yy, xy, both


def cauchy_schwarz() -> Term:
    """(Σ xy)² ≤ Σ x² · Σ y²."""
    xx, yy, xy, _ = _sums(pairs)
    return forall([pairs], xy * xy <= xx * yy)


@lemma
def _quadratic() -> Thm:
    """Σ x² − 2t Σ xy + t² Σ y² ≥ 0 for every t."""

    def at(pairs: Term) -> Term:
        xx, yy, xy, _ = _sums(pairs)
        return xx - t * xy * 2 + t * t * yy >= 0

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        square = square_nonneg()(fst(h) - t * snd(h))
        laws = [at_next(total(PAIR), h, tail, each) for each in _bodies()[:3]]
        return kernel.generalize(
            [t], rewritten(at(cons(h, tail)), laws, smaller(t), square)
        )

    phi = forall([t], at(pairs))
    base = auto(subst(phi, {pairs: nil(PAIR)}), defs=[total(PAIR)])
    return list_induction(pairs, phi, base, step)


@lemma
def _squares_nonneg() -> Thm:
    xx, yy, _, both = _sums(pairs)
    goal = conj(xx >= 0, yy >= 0, both >= 0)
    return by_induction(pairs, goal, by=[square_nonneg()], defs=[total(PAIR)])


@lemma
def _prove_cauchy_schwarz() -> Thm:
    xx, yy, xy, _ = _sums(pairs)
    goal = xy * xy <= xx * yy
    nonneg, quadratic = _squares_nonneg()(pairs), _quadratic()(pairs)
    some = suppose(yy > 0)
    q = xy / yy
    is_q = quotient_of(xy, yy, *some)
    half = exact(
        q * (q * yy) <= xx,
        quadratic(q),
        kernel.congr(q * (q * yy), kernel.refl(q), is_q),
    )
    scaled = product_nonneg(yy, xx - q * (q * yy), *some, half)
    yes = exact(goal, scaled, kernel.congr(q * yy * (q * yy), is_q, is_q))
    none = suppose(~(yy > 0))
    zero = exact(eq(yy, 0), nonneg, *none)
    no = exact(
        goal, _no_product(zero, quadratic), kernel.congr(xx * yy, kernel.refl(xx), zero)
    )
    return kernel.generalize([pairs], kernel.by_cases(yy > 0, yes, no))


def _no_product(zero: Thm, quadratic: Thm) -> Thm:
    """Where Σ y² = 0, also (Σ xy)² = 0: the quadratic is linear in t."""
    xx, yy, xy, _ = _sums(pairs)
    some = suppose(xy * xy > 0)
    u = (xx + 1) / (xy * xy) * xy
    scale = quotient_of(xx + 1, xy * xy, *some)
    uu = kernel.congr(u * u * yy, kernel.refl(u * u), zero)
    none = exact(real(1) <= 0, quadratic(u), uu, scale, _squares_nonneg()(pairs))
    no = exact(eq(xy * xy, 0), none)
    other = exact(eq(xy * xy, 0), square_nonneg()(xy), *suppose(~(xy * xy > 0)))
    return kernel.by_cases(xy * xy > 0, no, other)


def minkowski() -> Term:
    """√Σ (x + y)² ≤ √Σ x² + √Σ y²."""
    xx, yy, _, both = _sums(pairs)
    return forall([pairs], SQRT(both) <= SQRT(xx) + SQRT(yy))


@lemma
def _prove_minkowski() -> Thm:
    xx, yy, xy, both = _sums(pairs)
    nonneg = _squares_nonneg()(pairs)
    expand = by_induction(pairs, eq(both, xx + xy * 2 + yy), defs=[total(PAIR)])(pairs)
    a, b, c = SQRT(xx), SQRT(yy), SQRT(both)
    roots = [use(SQRT_SQUARE(v), nonneg) for v in (xx, yy, both)]
    ab = product_nonneg(a, b, *roots)
    aa_bb = [kernel.conj_elim(r, 1) for r in roots[:2]]
    square = exact(eq(a * b * (a * b), xx * yy), kernel.congr(a * a * (b * b), *aa_bb))
    over = suppose(xy > a * b)
    more = product_pos(xy - a * b, xy + a * b, *over, ab)
    none = exact(xy <= a * b, more, square, _prove_cauchy_schwarz()(pairs))
    less = kernel.by_cases(
        xy > a * b, none, exact(xy <= a * b, *suppose(~(xy > a * b)))
    )
    far = suppose(c > a + b)
    gap = product_pos(c - (a + b), c + (a + b), *far, *roots)
    no = exact(c <= a + b, gap, expand, less, *roots)
    th = kernel.by_cases(c > a + b, no, exact(c <= a + b, *suppose(~(c > a + b))))
    return kernel.generalize([pairs], th)


def _mutants() -> Mapping[str, Term]:
    xx, yy, xy, _ = _sums(pairs)
    return {
        "strict for weak inequality": forall([pairs], xy * xy < xx * yy),
        "without the square": forall([pairs], xy <= xx * yy),
    }


def _minkowski_mutants() -> Mapping[str, Term]:
    xx, yy, _, both = _sums(pairs)
    return {"squares for roots": forall([pairs], both <= xx + yy)}


entries, entry, eps = (
    var("entries", list_of(REAL)),
    var("entry", REAL),
    var("eps", REAL),
)


def _squares(entries: Term) -> Term:
    return total(REAL)(lam([entry], entry * entry), entries)


def unit_norm_below_one() -> Term:
    """After x / √(Σx² + ε) with ε > 0 the squared norm is ≥ 0 and strictly below 1."""
    root = SQRT(_squares(entries) + eps)
    unit = lam([entry], entry / root * (entry / root))
    value = total(REAL)(unit, entries)
    goal = conj(value >= 0, value < 1)
    return forall([eps, entries], implies(eps > 0, goal))


@lemma
def _prove_unit_norm() -> Thm:
    r = var("r", REAL)
    hyps = suppose(r > 0)
    unit = total(REAL)(lam([entry], entry / r * (entry / r)), entries)
    one, q = quotient_of(entry, r, *hyps), entry / r
    twice = kernel.congr(q * r * (q * r), one, one)
    each = exact(eq(q * q * (r * r), entry * entry), twice)
    each = kernel.generalize([entry], each)
    scaled = by_induction(
        entries,
        conj(eq(unit * (r * r), _squares(entries)), unit >= 0),
        by=[each, square_nonneg()],
        defs=[total(REAL)],
    )
    scaled = close([r], hyps, scaled)
    nonneg = by_induction(
        entries, _squares(entries) >= 0, by=[square_nonneg()], defs=[total(REAL)]
    )(entries)
    (small,) = suppose(eps > 0)
    inside = _squares(entries) + eps
    root = SQRT(inside)
    square = use(SQRT_SQUARE(inside), small, nonneg)
    positive = have(root > 0, square, small, nonneg)
    at = kernel.mp(scaled(root), positive)(entries)
    value = unit_norm_below_one()
    unit = total(REAL)(lam([entry], entry / root * (entry / root)), entries)
    over = suppose(unit >= 1)
    excess = product_nonneg(unit - 1, root * root, *over, square, nonneg, small)
    no = exact(unit < 1, excess, at, square, small)
    less = kernel.by_cases(unit >= 1, no, exact(unit < 1, *suppose(~(unit >= 1))))
    goal = conj(unit >= 0, unit < 1)
    return restate(value, close([eps, entries], [small], have(goal, at, less)))


ALL = "all widths, all reals"


def _unit_mutants() -> Mapping[str, Term]:
    """Wrong variants of unit_norm_below_one."""
    root = SQRT(_squares(entries) + eps)
    unit = lam([entry], entry / root * (entry / root))
    value = total(REAL)(unit, entries)
    return {
        "strictly above 0": forall([eps, entries], implies(eps > 0, value > 0)),
        "at most one half": forall([eps, entries], implies(eps > 0, value * 2 <= 1)),
        "ε may be 0": forall([eps, entries], implies(eps >= 0, value < 1)),
    }


THEOREMS: Theorems = {
    "cauchy_schwarz": Theorem(
        statement=cauchy_schwarz,
        proof=_prove_cauchy_schwarz,
        scope=ALL,
        mutants=_mutants,
    ),
    "minkowski": Theorem(
        statement=minkowski,
        proof=_prove_minkowski,
        scope=ALL,
        mutants=_minkowski_mutants,
    ),
    "unit_norm_below_one": Theorem(
        statement=unit_norm_below_one,
        proof=_prove_unit_norm,
        scope="all widths, all reals, all ε > 0",
        mutants=_unit_mutants,
    ),
}
