"""MLA: a whole absorbed head, scores and values, is the expanded head."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import close, exact, lemma, suppose, use
from k3.logic.kernel import Thm
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import conj, eq, forall, implies, lam, var
from k3.logic.terms import Term
from k3.proof import mla
from k3.proof.substitution import under
from k3.proof.sums import sigma, sum_scale, sum_swap
from k3.proof.theorem import Theorem, Theorems

VECTOR, MATRIX = fun(INT, REAL), fun(INT, INT, REAL)
tokens, latent, content, width, t, i, c, e = (
    var(name, INT)
    for name in ("tokens", "latent", "content", "width", "t", "i", "c", "e")
)
rows, shared, K, W = (var(name, MATRIX) for name in ("rows", "shared", "K", "W"))
q, r, weight = var("q", VECTOR), var("r", VECTOR), var("weight", VECTOR)
grade = var("grade", fun(REAL, REAL))


def _values(query: Term) -> Term:
    """Σ_t w_t (Σ_i row_ti W_ie) against Σ_i (Σ_t w_t row_ti) W_ie."""
    expanded = sigma(tokens, weight(t) * sigma(latent, rows(t, i) * W(i, e), i), t)
    inside = conj(tokens >= 0, latent >= 0)
    every = [tokens, latent, weight, rows, W, e]
    return forall(every, implies(inside, eq(expanded, query)))


def value_after_mix() -> Term:
    """Mixing latent rows, then mapping the mix to a value, is mapping every row to a
    value, then mixing.
    """
    mixed = sigma(tokens, weight(t) * rows(t, i), t)
    return _values(sigma(latent, mixed * W(i, e), i))


@lemma
def _prove_values() -> Thm:
    (given,) = suppose(conj(tokens >= 0, latent >= 0))
    term = weight(t) * (rows(t, i) * W(i, e))
    pull = use(sum_scale()(latent, weight(t), lam([i], rows(t, i) * W(i, e))), given)
    inward = under(t, tokens, kernel.sym(pull))
    swap = use(sum_swap()(latent, tokens, lam([t, i], term)), given)
    product = W(i, e) * (weight(t) * rows(t, i))
    order = under(t, tokens, kernel.ring(term, product))
    factor = use(sum_scale()(tokens, W(i, e), lam([t], weight(t) * rows(t, i))), given)
    mixed = sigma(tokens, weight(t) * rows(t, i), t)
    whole = exact(eq(sigma(tokens, term, t), mixed * W(i, e)), order, factor)
    th = kernel.trans(kernel.trans(inward, swap), under(i, latent, whole))
    return close([tokens, latent, weight, rows, W, e], [given], th)


def _graded(query: Term) -> Term:
    """The weight of token t before division: any function of its score."""
    return grade(query + sigma(width, shared(t, c) * r(c), c))


EXPANDED = sigma(content, q(c) * sigma(latent, rows(t, i) * K(i, c), i), c)
ABSORBED = sigma(latent, rows(t, i) * sigma(content, K(i, c) * q(c), c), i)
EVERY = [tokens, latent, content, width, rows, shared, K, W, q, r, grade, e]


def _head(score: Term, value: Term) -> Term:
    """One head: the expanded one against latents mixed with these scores."""
    keys = _graded(EXPANDED)
    each = sigma(latent, rows(t, i) * W(i, e), i)
    expanded = sigma(tokens, keys * each, t) / sigma(tokens, keys, t)
    weights = _graded(score)
    mixed = sigma(tokens, weights * rows(t, i), t)
    absorbed = sigma(latent, mixed * value, i) / sigma(tokens, weights, t)
    inside = conj(tokens >= 0, latent >= 0, content >= 0)
    return forall(EVERY, implies(inside, eq(expanded, absorbed)))


def head_equals_expanded() -> Term:
    """A head that projects its query once, mixes latent rows and maps the mix to values
    is the head that expands keys and values of every row: for softmax, and for any
    other function of a score that is divided by its sum.
    """
    return _head(ABSORBED, W(i, e))


@lemma
def _prove_head() -> Thm:
    (given,) = suppose(conj(tokens >= 0, latent >= 0, content >= 0))
    row = lam([i], rows(t, i))
    score_law = mla.THEOREMS["absorbed_score_equals_expanded"].proof()
    scores = use(score_law(content, latent, q, row, K), given)
    key = sigma(width, shared(t, c) * r(c), c)
    score = kernel.congr(EXPANDED + key, scores, kernel.refl(key))
    weights = kernel.congr(grade(EXPANDED + key), kernel.refl(grade), score)
    total = under(t, tokens, weights)
    each = sigma(latent, rows(t, i) * W(i, e), i)
    product = kernel.congr(_graded(EXPANDED) * each, weights, kernel.refl(each))
    mixed = under(t, tokens, product)
    after = _prove_values()(tokens, latent, lam([t], _graded(ABSORBED)), rows, W, e)
    top = kernel.trans(mixed, use(after, given))
    th = kernel.congr(top.concl.args[0] / total.concl.args[0], top, total)
    return close(EVERY, [given], th)


def _value_mutants() -> Mapping[str, Term]:
    mixed = sigma(tokens, weight(t) * rows(t, i), t)
    return {
        "the transposed map": _values(sigma(latent, mixed * W(e, i), i)),
        "rows not weighted": _values(
            sigma(latent, sigma(tokens, rows(t, i), t) * W(i, e), i)
        ),
    }


def _head_mutants() -> Mapping[str, Term]:
    raw = sigma(latent, rows(t, i) * q(i), i)
    return {
        "the query not projected": _head(raw, W(i, e)),
        "the key map for values": _head(ABSORBED, K(i, e)),
    }


ALL = "all numbers of tokens, all latent and head widths, all reals"
THEOREMS: Theorems = {
    "value_after_mix": Theorem(
        statement=value_after_mix,
        proof=_prove_values,
        scope=ALL,
        mutants=_value_mutants,
    ),
    "head_equals_expanded": Theorem(
        statement=head_equals_expanded,
        proof=_prove_head,
        scope=ALL + ", all functions of a score (softmax: its exponential)",
        mutants=_head_mutants,
    ),
}
