"""The KDA update, Eq. 1: coordinates and its affine map; theorems of `kda`."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    close,
    exact,
    have,
    lemma,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    implies,
    ite,
    lam,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.sums import SUM, sigma, sum_add, sum_pick, sum_scale

n, i, j, m = (var(v, INT) for v in ("n", "i", "j", "m"))
S = var("S", fun(INT, INT, REAL))
alpha, k, v = (var(name, fun(INT, REAL)) for name in ("alpha", "k", "v"))
beta = var("beta", REAL)


def matrix_form(i: Term, j: Term) -> Term:
    """Eq. 1: ((I − β k kᵀ) Diag(α) S + β k vᵀ) at row i, column j."""
    eye = ite(eq(m, i), real(1), real(0))
    return sigma(n, (eye - beta * k(i) * k(m)) * (alpha(m) * S(m, j)), m) + beta * k(
        i
    ) * v(j)


def coordinates(i: Term, j: Term) -> Term:
    """Decay, read with k, correct and write, at row i, column j."""
    read = sigma(n, k(m) * (alpha(m) * S(m, j)), m)
    return alpha(i) * S(i, j) - beta * k(i) * read + beta * k(i) * v(j)


EVERY = [n, alpha, k, v, beta, S, i, j]


def _update(left: Term, right: Term) -> Term:
    inside = conj(n >= 0, i >= 0, i < n)
    return forall(EVERY, implies(inside, eq(left, right)))


def matrix_form_in_coordinates() -> Term:
    """Eq. 1 as a matrix product is decay, then read with k, then correct and write."""
    return _update(matrix_form(i, j), coordinates(i, j))


@lemma
def prove_coordinates() -> Thm:
    """The identity in I picks a row; the rest is the read."""
    hyps = suppose(conj(n >= 0, i >= 0, i < n))
    row = alpha(m) * S(m, j)
    read = lam([m], k(m) * row)
    pick = lam([m], ite(eq(m, i), row, real(0)))
    split = ite(eq(m, i), row, real(0)) + (-(beta * k(i))) * (k(m) * row)
    eye = ite(eq(m, i), real(1), real(0))
    body = (eye - beta * k(i) * k(m)) * row
    same = kernel.abstract([m], have(eq(body, split)))
    whole = kernel.congr(SUM(lam([m], body), n), same, kernel.refl(n))
    factor = -(beta * k(i))
    added = use(sum_add()(n, pick, lam([m], factor * (k(m) * row))), *hyps)
    scaled = use(sum_scale()(n, factor, read), *hyps)
    picked = use(sum_pick()(n, i, lam([m], row)), *hyps)
    goal = eq(matrix_form(i, j), coordinates(i, j))
    th = exact(goal, whole, added, scaled, picked)
    return close(EVERY, hyps, th)


def _affine(T: Term, g: Term) -> Term:
    return _update(coordinates(i, j), g + sigma(n, T * S(m, j), m))


def _transition() -> Term:
    """T = (I − β k kᵀ) Diag(α) at row i, column m."""
    eye = ite(eq(m, i), real(1), real(0))
    return (eye - beta * k(i) * k(m)) * alpha(m)


def update_is_affine() -> Term:
    """Decay, read, correct and write make of every value column S the column g + T S,
    with T = (I − β k kᵀ) Diag(α) and g = β v k, whatever S is: an affine map, as
    context parallelism composes them.
    """
    return _affine(_transition(), beta * k(i) * v(j))


@lemma
def prove_affine() -> Thm:
    """The steps of the update are Eq. 1, and that is the affine map regrouped."""
    hyps = suppose(conj(n >= 0, i >= 0, i < n))
    eye = ite(eq(m, i), real(1), real(0))
    factor = eye - beta * k(i) * k(m)
    row = alpha(m) * S(m, j)
    same = kernel.ring(factor * row, factor * alpha(m) * S(m, j))
    whole = SUM(lam([m], factor * row), n)
    sums = kernel.congr(whole, kernel.abstract([m], same), kernel.refl(n))
    steps = kernel.mp(prove_coordinates()(*EVERY), hyps[0])
    moved = beta * k(i) * v(j) + sigma(n, _transition() * S(m, j), m)
    return close(EVERY, hyps, exact(eq(coordinates(i, j), moved), steps, sums))


def affine_mutants() -> Mapping[str, Term]:
    """Wrong variants of update_is_affine."""
    eye, write = ite(eq(m, i), real(1), real(0)), beta * k(i) * v(j)
    factor = eye - beta * k(i) * k(m)
    return {
        "linear: nothing is written": _affine(_transition(), real(0)),
        "the decay comes after": _affine(factor * alpha(i), write),
        "key and value exchanged": _affine(_transition(), beta * k(j) * v(i)),
        "the correction is added": _affine(
            (eye + beta * k(i) * k(m)) * alpha(m), write
        ),
        "the write without its strength": _affine(_transition(), k(i) * v(j)),
    }


def update_mutants() -> Mapping[str, Term]:
    """Wrong variants of matrix_form_in_coordinates."""
    late = sigma(n, k(m) * S(m, j), m)
    after = alpha(i) * (S(i, j) - beta * k(i) * late) + beta * k(i) * v(j)
    unread = alpha(i) * S(i, j) + beta * k(i) * v(j)
    swapped = coordinates(i, j) - beta * k(i) * v(j) + beta * k(j) * v(i)
    return {
        "decay after correction": _update(matrix_form(i, j), after),
        "no correction": _update(matrix_form(i, j), unread),
        "key and value exchanged": _update(matrix_form(i, j), swapped),
    }
