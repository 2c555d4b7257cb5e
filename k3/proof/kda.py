"""KDA: the update in coordinates, retention bounds, unit keys, chunk decay."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.analysis import EXP
from k3.logic.auto import (
    by_induction,
    close,
    exact,
    have,
    lemma,
    restate,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, fun, list_of, pair_of
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    fst,
    implies,
    ite,
    lam,
    real,
    snd,
    to_real,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import length, total
from k3.proof.reals import (
    SIGMOID,
    exp_increases,
    exp_zero,
    product_pos,
    sigmoid_between,
)
from k3.proof.sums import SUM, sigma, sum_add, sum_pick, sum_scale
from k3.proof.theorem import Theorem, Theorems

floor, scale, logit = (var(v, REAL) for v in ("floor", "scale", "logit"))
LOG_RETENTION = define(
    "log_retention", [floor, scale, logit], floor * SIGMOID(EXP(scale) * logit)
)
RETENTION = define(
    "retention", [floor, scale, logit], EXP(LOG_RETENTION(floor, scale, logit))
)


@lemma
def _log_retention_between() -> Thm:
    """floor < log retention < 0."""
    hyps = suppose(floor < 0)
    gate = EXP(scale) * logit
    between, law = sigmoid_between()(gate), unfold(LOG_RETENTION, floor, scale, logit)
    low = product_pos(-floor, real(1) - SIGMOID(gate), *hyps, between)
    high = product_pos(-floor, SIGMOID(gate), *hyps, between)
    value = LOG_RETENTION(floor, scale, logit)
    goal = conj(floor < value, value < 0)
    return close([floor, scale, logit], hyps, have(goal, law, low, high))


def retention_between() -> Term:
    """With a negative log floor, e^floor < retention < 1, both strictly."""
    value = RETENTION(floor, scale, logit)
    between = conj(EXP(floor) < value, value < 1)
    return forall([floor, scale, logit], implies(floor < 0, between))


@lemma
def _prove_retention() -> Thm:
    hyps = suppose(floor < 0)
    inside = kernel.mp(_log_retention_between()(floor, scale, logit), hyps[0])
    value = LOG_RETENTION(floor, scale, logit)
    above = use(exp_increases()(floor, value), inside)
    below = use(exp_increases()(value, real(0)), inside)
    law = unfold(RETENTION, floor, scale, logit)
    r = RETENTION(floor, scale, logit)
    goal = conj(EXP(floor) < r, r < 1)
    return close([floor, scale, logit], hyps, have(goal, above, below, law, exp_zero()))


def released_retention_between() -> Term:
    """With the released floor −5, e^−5 < retention < 1."""
    value = RETENTION(real(-5), scale, logit)
    return forall([scale, logit], conj(EXP(real(-5)) < value, value < 1))


@lemma
def _prove_released_retention() -> Thm:
    at = _prove_retention()(-5, scale, logit)
    return kernel.generalize([scale, logit], kernel.mp(at, have(real(-5) < 0)))


# ---------------------------------------------------------------- decay of a chunk

TOKEN = pair_of(REAL, REAL)
tokens, token = var("tokens", list_of(TOKEN)), var("token", TOKEN)


def _decay(floor: Term, tokens: Term) -> Term:
    """Σ of log retentions; a token is its (scale, logit)."""
    each = lam([token], LOG_RETENTION(floor, fst(token), snd(token)))
    return total(TOKEN)(each, tokens)


def _count(tokens: Term) -> Term:
    return to_real(length(TOKEN)(tokens))


def chunk_decay_bound() -> Term:
    """Over n tokens the log decay is between n·floor and 0."""
    value = _decay(floor, tokens)
    between = conj(floor * _count(tokens) <= value, value <= 0)
    return forall([floor, tokens], implies(floor < 0, between))


@lemma
def _prove_chunk_decay() -> Thm:
    hyps = suppose(floor < 0)
    value = _decay(floor, tokens)
    goal = conj(floor * _count(tokens) <= value, value <= 0)
    each = kernel.generalize(
        [scale, logit],
        kernel.mp(_log_retention_between()(floor, scale, logit), hyps[0]),
    )
    defs = [total(TOKEN), length(TOKEN)]
    th = by_induction(tokens, goal, by=[each, *hyps], defs=defs)
    return restate(chunk_decay_bound(), close([floor], hyps, th))


def sixteen_tokens_decay_above_minus_80() -> Term:
    """With floor −5 the log decay over a chunk of at most 16 tokens is ≥ −80."""
    short = length(TOKEN)(tokens) <= 16
    return forall([tokens], implies(short, _decay(real(-5), tokens) >= -80))


@lemma
def _prove_sixteen() -> Thm:
    hyps = suppose(length(TOKEN)(tokens) <= 16)
    bound = use(_prove_chunk_decay()(-5, tokens))
    th = have(_decay(real(-5), tokens) >= -80, bound, *hyps)
    return close([tokens], hyps, th)


# ------------------------------------------------------------------ the update, Eq. 1

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
def _prove_coordinates() -> Thm:
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


def update_is_affine() -> Term:
    """On each value column the update is S ↦ g + T S with T = (I − β k kᵀ) Diag(α) and
    g = β k v: the affine maps of context parallelism.
    """
    return _update(matrix_form(i, j), _affine())


def _affine() -> Term:
    eye = ite(eq(m, i), real(1), real(0))
    T = (eye - beta * k(i) * k(m)) * alpha(m)
    return beta * k(i) * v(j) + sigma(n, T * S(m, j), m)


@lemma
def _prove_affine() -> Thm:
    eye = ite(eq(m, i), real(1), real(0))
    factor = eye - beta * k(i) * k(m)
    same = kernel.ring(factor * (alpha(m) * S(m, j)), factor * alpha(m) * S(m, j))
    whole = SUM(lam([m], factor * (alpha(m) * S(m, j))), n)
    sums = kernel.congr(whole, kernel.abstract([m], same), kernel.refl(n))
    hyps = suppose(conj(n >= 0, i >= 0, i < n))
    th = exact(eq(matrix_form(i, j), _affine()), sums)
    return close(EVERY, hyps, th)


def _update_mutants() -> Mapping[str, Term]:
    late = sigma(n, k(m) * S(m, j), m)
    after = alpha(i) * (S(i, j) - beta * k(i) * late) + beta * k(i) * v(j)
    unread = alpha(i) * S(i, j) + beta * k(i) * v(j)
    swapped = coordinates(i, j) - beta * k(i) * v(j) + beta * k(j) * v(i)
    return {
        "decay after correction": _update(matrix_form(i, j), after),
        "no correction": _update(matrix_form(i, j), unread),
        "key and value exchanged": _update(matrix_form(i, j), swapped),
    }


def _retention_mutants() -> Mapping[str, Term]:
    value = RETENTION(floor, scale, logit)
    free = conj(EXP(floor) < value, value < 1)
    half = implies(floor < 0, EXP(floor / 2) < value)
    return {
        "a floor of any sign": forall([floor, scale, logit], free),
        "half the floor": forall([floor, scale, logit], half),
    }


def _decay_mutants() -> Mapping[str, Term]:
    long = length(TOKEN)(tokens) <= 17
    wrong = implies(long, _decay(real(-5), tokens) >= -80)
    return {"seventeen tokens": forall([tokens], wrong)}


THEOREMS: Theorems = {
    "matrix_form_in_coordinates": Theorem(
        statement=matrix_form_in_coordinates,
        proof=_prove_coordinates,
        scope="all key widths, all reals",
        mutants=_update_mutants,
    ),
    "update_is_affine": Theorem(
        statement=update_is_affine,
        proof=_prove_affine,
        scope="all key widths, all reals",
    ),
    "retention_between": Theorem(
        statement=retention_between,
        proof=_prove_retention,
        scope="all negative floors, all scales and logits",
        mutants=_retention_mutants,
    ),
    "released_retention_between": Theorem(
        statement=released_retention_between,
        proof=_prove_released_retention,
        scope="all scales and logits",
    ),
    "chunk_decay_bound": Theorem(
        statement=chunk_decay_bound,
        proof=_prove_chunk_decay,
        scope="all negative floors, all chunk lengths",
    ),
    "sixteen_tokens_decay_above_minus_80": Theorem(
        statement=sixteen_tokens_decay_above_minus_80,
        proof=_prove_sixteen,
        scope="all chunks of at most 16 tokens",
        mutants=_decay_mutants,
        hints={"seventeen tokens": {"tokens": ((3, 1),) * 17}},
    ),
}
