"""Forward substitution in (I + Diag(β) A) x = Diag(β) y, A read below its diagonal."""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    close,
    exact,
    lemma,
    nat_induction,
    restate,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import conj, eq, forall, implies, integer, ite, lam, real, var
from k3.logic.terms import Term
from k3.proof.sums import SUM, sigma, sum_add, sum_congruence, sum_scale, sum_zero
from k3.proof.theorem import Theorem, Theorems

VECTOR, MATRIX = fun(INT, REAL), fun(INT, INT, REAL)
n, t, i, j, size = (var(v, INT) for v in ("n", "t", "i", "j", "size"))
A, B, R = (var(v, MATRIX) for v in ("A", "B", "R"))
beta, right, s, a, w, V, y = (
    var(name, VECTOR) for name in ("beta", "right", "s", "a", "w", "V", "y")
)


def _substituted(t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    beta, A, right = given
    before = rec(*given)
    now = beta(t) * (right(t) - sigma(t, A(t, j) * before(j), j))
    return lam([j], ite(eq(j, t), now, before(j)))


SOLVE = recursive(  # the first t unknowns, row by row; zero beyond them
    "solve",
    [beta, A, right, t],
    VECTOR,
    lambda *given: lam([j], real(0)),
    _substituted,
)


def times(a: Term, th: Thm) -> Thm:
    """a·x = a·y from x = y."""
    return kernel.congr(a * th.concl.args[0], kernel.refl(a), th)


def under(index: Term, most: Term, same: Thm) -> Thm:
    """Σ x = Σ y from x = y, no hypothesis about the index."""
    body = kernel.abstract([index], same)
    whole = SUM(lam([index], same.concl.args[0]), most)
    return kernel.congr(whole, body, kernel.refl(most))


def agree(index: Term, most: Term, natural: Thm, inside: Thm, same: Thm) -> Thm:
    """Σ x = Σ y from x = y inside 0 ≤ index < most."""
    left, right = (lam([index], side) for side in same.concl.args)
    pointwise = close([index], [inside], same)
    return use(sum_congruence()(left, right, most), natural, pointwise)


def at(law: Thm, *places: Term) -> Thm:
    """f x = g x from f = g."""
    left = law.concl.args[0](*places)
    return kernel.congr(left, law, *(kernel.refl(p) for p in places))


@lemma
def dot() -> Thm:
    """Σ_i w(a + Σ_j B V) = Σ_i w a + Σ_j (Σ_i w B) V."""
    (dim,) = suppose(n >= 0)
    column = lam([j], sigma(n, w(i) * B(j, i), i) * V(j))

    def inner(t: Term) -> Term:
        return sigma(t, B(j, i) * V(j), j)

    def goal(t: Term) -> Term:
        whole = sigma(n, w(i) * (a(i) + inner(t)), i)
        return eq(whole, sigma(n, w(i) * a(i), i) + SUM(column, t))

    def step(t: Term, natural: Thm, smaller: Thm) -> Thm:
        before, last = w(i) * (a(i) + inner(t)), V(t) * (w(i) * B(t, i))
        law = use(at_next(SUM, t, lam([j], B(j, i) * V(j))), natural)
        body = w(i) * (a(i) + inner(t + 1))
        same = under(i, n, exact(eq(body, before + last), times(w(i), law)))
        added = use(sum_add()(n, lam([i], before), lam([i], last)), dim)
        scaled = use(sum_scale()(n, V(t), lam([i], w(i) * B(t, i))), dim)
        grown = use(at_next(SUM, t, column), natural)
        return exact(goal(t + 1), same, added, scaled, grown, smaller)

    law = at_zero(SUM, lam([j], B(j, i) * V(j)))
    body = w(i) * (a(i) + inner(integer(0)))
    same = under(i, n, exact(eq(body, w(i) * a(i)), times(w(i), law)))
    base = exact(goal(integer(0)), same, at_zero(SUM, column))
    (steps,) = suppose(t >= 0)
    th = use(nat_induction(t, goal(t), base, step)(t), steps)
    return close([n, t, w, a, B, V], [dim, steps], th)


def solved_rows_stay() -> Term:
    """Rows that forward substitution has found are not changed by later rows."""
    same = eq(SOLVE(beta, A, right, size)(j), SOLVE(beta, A, right, t)(j))
    inside = conj(j >= 0, j < t, t <= size)
    return forall([beta, A, right, t, j, size], implies(inside, same))


@lemma
def prove_stay() -> Thm:
    """Found rows stay."""

    def goal(size: Term) -> Term:
        same = eq(SOLVE(beta, A, right, size)(j), SOLVE(beta, A, right, t)(j))
        return forall([t, j], implies(conj(j >= 0, j < t, t <= size), same))

    def step(size: Term, natural: Thm, smaller: Thm) -> Thm:
        (inside,) = suppose(conj(j >= 0, j < t, t <= size + 1))
        here = at(use(at_next(SOLVE, size, beta, A, right), natural), j)
        same = eq(SOLVE(beta, A, right, size + 1)(j), SOLVE(beta, A, right, t)(j))
        th = kernel.ground(same, [here, smaller(t, j), inside, natural])
        return close([t, j], [inside], th)

    (none,) = suppose(conj(j >= 0, j < t, t <= 0))
    same = eq(SOLVE(beta, A, right, integer(0))(j), SOLVE(beta, A, right, t)(j))
    base = close([t, j], [none], kernel.ground(same, [none]))
    th = nat_induction(size, goal(size), base, step)
    (inside,) = suppose(conj(j >= 0, j < t, t <= size))
    natural = exact(size >= 0, inside)
    th = use(use(th(size), natural)(t, j), inside)
    return close([beta, A, right, t, j, size], [inside], th)


def _parts(size: Term, j: Term) -> tuple[Term, Term]:
    """U and the row of W: solutions for y and for the columns of R."""
    return (
        SOLVE(beta, A, y, size)(j),
        SOLVE(beta, A, lam([t], R(t, i)), size)(j) * s(i),
    )


SHIFTED = lam([t], y(t) - sigma(n, R(t, i) * s(i), i))


def _split(size: Term, minus: bool = True) -> Term:
    U, W = _parts(size, j)
    W = sigma(n, W, i)
    apart = U - W if minus else U + W
    return eq(SOLVE(beta, A, SHIFTED, size)(j), apart)


LINEAR = [n, beta, A, y, R, s, size, j]


def _linear(minus: bool = True) -> Term:
    inside = conj(n >= 0, size >= 0)
    return forall(LINEAR, implies(inside, _split(size, minus)))


def state_splits_off() -> Term:
    """Forward substitution for y − R s is that for y minus that for R times s: the WY
    form solves once for U and W, whatever the memory is.
    """
    return _linear()


def _new_row(size: Term, natural: Thm, dim: Thm, smaller: Thm) -> Thm:
    """β (y − R s − A (U − W s)) = (β (y − A U)) − (β (R − A W)) s."""
    U, W = _parts(size, j)
    same = under(j, size, times(A(size, j), smaller(j)))
    # Σ_j A (U − Σ_i W s) = Σ_j A U + Σ_i (Σ_j A W) (−s)
    row = lam([j], A(size, j))
    table = lam([i, j], SOLVE(beta, A, lam([t], R(t, i)), size)(j))
    minus = lam([i], -s(i))
    whole = use(dot()(size, n, row, lam([j], U), table, minus), dim, natural)
    inner = sigma(n, table(i, j) * minus(i), i)
    scaled = use(sum_scale()(n, real(-1), lam([i], W)), dim)
    flip = under(i, n, kernel.ring(table(i, j) * minus(i), real(-1) * W))
    each = exact(eq(U - sigma(n, W, i), U + inner), flip, scaled)
    moved = under(j, size, times(A(size, j), each))
    # Σ_i β (R − Σ_j A W) s = β Σ_i R s + β Σ_i (Σ_j A W) (−s)
    column = sigma(size, A(size, j) * table(i, j), j)
    pieces = lam([i], R(size, i) * s(i)), lam([i], column * minus(i))
    body = beta(size) * (R(size, i) - column) * s(i)
    split = under(i, n, kernel.ring(body, beta(size) * (pieces[0](i) + pieces[1](i))))
    both = lam([i], pieces[0](i) + pieces[1](i))
    outer = use(sum_scale()(n, beta(size), both), dim)
    added = use(sum_add()(n, *pieces), dim)
    inside = exact(
        eq(
            SHIFTED(size) - same.concl.args[0],
            y(size) - sigma(size, A(size, j) * U, j) - SUM(both, n),
        ),
        *(same, moved, whole, added),
    )
    left = times(beta(size), inside)
    new = beta(size) * (y(size) - sigma(size, A(size, j) * U, j))
    goal = eq(left.concl.args[0], new - split.concl.args[0])
    return exact(goal, left, split, outer)


SIDES = (SHIFTED, y, lam([t], R(t, i)))


def _row_cases(size: Term, natural: Thm, dim: Thm, smaller: Thm) -> Thm:
    """The split of row j when one more row is found: the new row or one before."""
    rows = [at(use(at_next(SOLVE, size, beta, A, x), natural), j) for x in SIDES]
    new = _new_row(size, natural, dim, smaller)
    cases = []
    for here, branch in ((eq(j, size), 1), (~eq(j, size), 2)):
        picked = [
            kernel.ground(
                eq(row.concl.args[0], row.concl.args[1].args[branch]),
                [row, kernel.assume(here)],
            )
            for row in rows
        ]
        W = _weighted(picked[2])
        known = new if branch == 1 else smaller(j)
        cases.append(exact(_split(size + 1), picked[0], picked[1], W, known))
    return kernel.by_cases(eq(j, size), *cases)


def _weighted(row: Thm) -> Thm:
    """A row of W under the sum W s."""
    return under(i, n, kernel.congr(row.concl.args[0] * s(i), row, kernel.refl(s(i))))


def _split_at_zero(dim: Thm) -> Thm:
    """No row is found yet: both sides are 0."""
    rows = [at(at_zero(SOLVE, beta, A, x), j) for x in SIDES]
    W = rows[2].concl.args[0] * s(i)
    product = kernel.congr(W, rows[2], kernel.refl(s(i)))
    gone = under(i, n, kernel.trans(product, kernel.ring(real(0) * s(i), real(0))))
    none = use(sum_zero()(n), dim)
    return exact(_split(integer(0)), rows[0], rows[1], gone, none)


@lemma
def prove_split() -> Thm:
    """U − W s solves for y − R s."""
    (dim,) = suppose(n >= 0)

    def step(size: Term, natural: Thm, smaller: Thm) -> Thm:
        return kernel.generalize([j], _row_cases(size, natural, dim, smaller))

    base = kernel.generalize([j], _split_at_zero(dim))
    th = nat_induction(size, forall([j], _split(size)), base, step)
    (natural,) = suppose(size >= 0)
    th = close([size, j], [natural], use(th(size), natural)(j))
    return restate(state_splits_off(), close([n, beta, A, y, R, s], [dim], th))


def _stay_mutants() -> Mapping[str, Term]:
    same = eq(SOLVE(beta, A, right, size)(j), SOLVE(beta, A, right, t)(j))
    inside = conj(j >= 0, j <= t, t <= size)
    wrong = forall([beta, A, right, t, j, size], implies(inside, same))
    return {"the row not found yet": wrong}


THEOREMS: Theorems = {
    "solved_rows_stay": Theorem(
        statement=solved_rows_stay,
        proof=prove_stay,
        scope="all sizes, all real matrices and right sides",
        mutants=_stay_mutants,
    ),
    "state_splits_off": Theorem(
        statement=state_splits_off,
        proof=prove_split,
        scope="all sizes and widths, all real matrices and right sides",
        mutants=lambda: {"the state added": _linear(minus=False)},
    ),
}
