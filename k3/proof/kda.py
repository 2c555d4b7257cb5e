"""KDA: the update in coordinates, retention bounds, unit keys, chunk decay."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.analysis import EXP
from k3.logic.auto import (
    by_induction,
    close,
    have,
    lemma,
    restate,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, list_of, pair_of
from k3.logic.syntax import (
    conj,
    forall,
    fst,
    implies,
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
from k3.proof.theorem import Theorem, Theorems
from k3.proof.update import (
    affine_mutants,
    matrix_form_in_coordinates,
    prove_affine,
    prove_coordinates,
    update_is_affine,
    update_mutants,
)

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


def _released_mutants() -> Mapping[str, Term]:
    value, every = RETENTION(real(-5), scale, logit), [scale, logit]
    return {
        "a floor of −4": forall(every, EXP(real(-4)) < value),
        "at most one half": forall(every, value * 2 <= 1),
    }


def _chunk_mutants() -> Mapping[str, Term]:
    value, every = _decay(floor, tokens), [floor, tokens]
    below = floor * _count(tokens) <= value
    return {
        "one token fewer": forall(
            every, implies(floor < 0, floor * (_count(tokens) - 1) <= value)
        ),
        "strictly below 0": forall(every, implies(floor < 0, value < 0)),
        "a floor of any sign": forall(every, below),
    }


THEOREMS: Theorems = {
    "matrix_form_in_coordinates": Theorem(
        statement=matrix_form_in_coordinates,
        proof=prove_coordinates,
        scope="all key widths, all reals",
        mutants=update_mutants,
    ),
    "update_is_affine": Theorem(
        statement=update_is_affine,
        proof=prove_affine,
        scope="all key and value widths, all reals",
        mutants=affine_mutants,
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
        mutants=_released_mutants,
    ),
    "chunk_decay_bound": Theorem(
        statement=chunk_decay_bound,
        proof=_prove_chunk_decay,
        scope="all negative floors, all chunk lengths",
        mutants=_chunk_mutants,
    ),
    "sixteen_tokens_decay_above_minus_80": Theorem(
        statement=sixteen_tokens_decay_above_minus_80,
        proof=_prove_sixteen,
        scope="all chunks of at most 16 tokens",
        mutants=_decay_mutants,
        hints={"seventeen tokens": {"tokens": ((3, 1),) * 17}},
    ),
}
