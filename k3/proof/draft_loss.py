"""The draft's unroll, and its loss: infinite exactly without overlap."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.analysis import EXP, EXP_LOG, LOG
from k3.logic.auto import (
    at_next,
    at_zero,
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
from k3.logic.match import opened, prenex
from k3.logic.sorts import REAL, fun, list_of, named, pair_of
from k3.logic.syntax import (
    FALSE,
    TRUE,
    conj,
    cons,
    eq,
    forall,
    fst,
    implies,
    ite,
    lam,
    minimum,
    nil,
    pair,
    real,
    snd,
    var,
)
from k3.logic.terms import Term
from k3.proof import scan
from k3.proof.lists import append, length, total
from k3.proof.reals import (
    exp_increases,
    exp_zero,
)
from k3.proof.sums import (
    every,
)
from k3.proof.theorem import Theorem, Theorems

FEATURE, EMBEDDING, ANSWER = map(named, ("Feature", "Embedding", "Answer"))
step = var("step", fun(FEATURE, EMBEDDING, pair_of(FEATURE, ANSWER)))
feature = var("feature", FEATURE)
es, more = var("embeddings", list_of(EMBEDDING)), var("more", list_of(EMBEDDING))
RUN = scan.run(FEATURE, EMBEDDING, ANSWER)
# the answers of steps that each read the feature which the last one wrote
UNROLL = define("unroll", [step, feature, es], snd(RUN(step, feature, es)))
COUNT = length(ANSWER)


def seven_steps() -> Term:
    """The training-time test has one answer a step: seven for seven embeddings."""
    seven = [var(f"e{i}", EMBEDDING) for i in range(1, 8)]
    listed = nil(EMBEDDING)
    for e in reversed(seven):
        listed = cons(e, listed)
    answers = COUNT(UNROLL(step, feature, listed))
    return forall([step, feature, *seven], eq(answers, 7))


@lemma
def _answers() -> Thm:
    """One answer an embedding."""
    goal = eq(COUNT(snd(RUN(step, feature, es))), length(EMBEDDING)(es))
    defs = [RUN, COUNT, length(EMBEDDING)]
    th = by_induction(es, forall([step, feature], goal), defs=defs)
    return prenex(th)


@lemma
def _prove_seven() -> Thm:
    vs, goal = opened(seven_steps())
    listed = goal.args[0].args[0].args[2]
    law = unfold(UNROLL, vs[0], vs[1], listed)
    count = _answers()(listed, vs[0], vs[1])
    counts = [at_zero(length(EMBEDDING))]
    tail = nil(EMBEDDING)
    for e in reversed(vs[2:]):
        counts.append(at_next(length(EMBEDDING), e, tail))
        tail = cons(e, tail)
    return kernel.generalize(
        vs, have(goal, kernel.congr(goal.args[0], law), count, *counts)
    )


def unroll_appends() -> Term:
    """Unrolling over more embeddings goes on from the feature that was reached."""
    reached = fst(RUN(step, feature, es))
    whole = UNROLL(step, feature, append(EMBEDDING)(es, more))
    parts = append(ANSWER)(UNROLL(step, feature, es), UNROLL(step, reached, more))
    return forall([step, feature, es, more], eq(whole, parts))


@lemma
def _prove_appends() -> Thm:
    reached = fst(RUN(step, feature, es))
    whole = snd(RUN(step, feature, append(EMBEDDING)(es, more)))
    parts = append(ANSWER)(snd(RUN(step, feature, es)), snd(RUN(step, reached, more)))
    goal = forall([step, feature, more], eq(whole, parts))
    defs = [RUN, append(EMBEDDING), append(ANSWER)]
    th = prenex(by_induction(es, goal, defs=defs))
    vs, same = opened(unroll_appends())
    at = th(vs[2], vs[0], vs[1], vs[3])
    reached = fst(RUN(*vs[:3]))
    joined = append(EMBEDDING)(vs[2], vs[3])
    laws = [
        unfold(UNROLL, vs[0], vs[1], joined),
        unfold(UNROLL, vs[0], vs[1], vs[2]),
        unfold(UNROLL, vs[0], reached, vs[3]),
    ]
    return kernel.generalize(vs, kernel.ground(same, [at, *laws]))


def _append_mutants() -> Mapping[str, Term]:
    """Wrong variants of unroll_appends."""
    whole = UNROLL(step, feature, append(EMBEDDING)(es, more))
    again = append(ANSWER)(UNROLL(step, feature, es), UNROLL(step, feature, more))
    return {
        "every step reads the first feature": forall(
            [step, feature, es, more], eq(whole, again)
        )
    }


TOKEN = pair_of(REAL, REAL)  # target probability p, draft probability q
tokens, token, bound = (
    var("tokens", list_of(TOKEN)),
    var("token", TOKEN),
    var("bound", REAL),
)
p, q = fst(token), snd(token)
OVERLAP = define(
    "overlap[draft]", [tokens], total(TOKEN)(lam([token], minimum(p, q)), tokens)
)
# (is it infinite, its value otherwise)
LOSS = define(
    "likelihood_loss[draft]",
    [tokens],
    ite(
        eq(OVERLAP(tokens), 0),
        pair(TRUE, real(0)),
        pair(FALSE, -LOG(OVERLAP(tokens))),
    ),
)
NONNEG = every(TOKEN)(lam([token], conj(p >= 0, q >= 0)), tokens)
APART = every(TOKEN)(lam([token], eq(p, 0) | eq(q, 0)), tokens)


def infinite_iff_no_overlap() -> Term:
    """The loss is infinite exactly when no token has positive probability under both
    the target and the draft.
    """
    return forall([tokens], implies(NONNEG, eq(fst(LOSS(tokens)), APART)))


@lemma
def _overlap() -> Thm:
    """The overlap is ≥ 0, and 0 exactly when the distributions are apart."""
    overlap = total(TOKEN)(lam([token], minimum(p, q)), tokens)
    goal = implies(NONNEG, conj(overlap >= 0, eq(eq(overlap, 0), APART)))
    defs = [total(TOKEN), every(TOKEN)]
    return by_induction(tokens, goal, defs=defs)


@lemma
def _prove_infinite() -> Thm:
    hyps = suppose(NONNEG)
    known = kernel.mp(_overlap()(tokens), hyps[0])
    laws = [unfold(LOSS, tokens), unfold(OVERLAP, tokens)]
    th = kernel.ground(eq(fst(LOSS(tokens)), APART), [known, *laws])
    return close([tokens], hyps, th)


def _infinite_mutants() -> Mapping[str, Term]:
    """Wrong variants of infinite_iff_no_overlap."""
    same = every(TOKEN)(lam([token], eq(p, 0)), tokens)
    infinite = fst(LOSS(tokens))
    return {
        "only for an empty target": forall(
            [tokens], implies(NONNEG, eq(infinite, same))
        ),
        "numbers of either sign": forall([tokens], eq(infinite, APART)),
    }


def finite_loss() -> Term:
    """With an overlap the loss is finite, e^−loss is the overlap, and the loss is ≥ 0
    if the overlap is at most 1; it exceeds b once the overlap is below e^−b.
    """
    value = snd(LOSS(tokens))
    overlap = OVERLAP(tokens)
    goal = conj(
        ~fst(LOSS(tokens)),
        eq(EXP(-value), overlap),
        implies(overlap <= 1, value >= 0),
        implies(overlap < EXP(-bound), value > bound),
    )
    return forall([tokens, bound], implies(overlap > 0, goal))


@lemma
def _prove_finite() -> Thm:
    overlap, value = OVERLAP(tokens), snd(LOSS(tokens))
    hyps = suppose(overlap > 0)
    law = unfold(LOSS, tokens)
    is_log = kernel.ground(eq(value, -LOG(overlap)), [law, *hyps])
    finite = kernel.ground(~fst(LOSS(tokens)), [law, *hyps])
    back = use(EXP_LOG(overlap), *hyps)
    moved = kernel.congr(EXP(-value), exact(eq(-value, LOG(overlap)), is_log))
    same = kernel.trans(moved, back)
    rises = exp_increases()
    small = suppose(overlap <= 1)
    up = rises(real(0), -value)
    low = kernel.ground(value >= 0, [up, same, exp_zero(), *small])
    less = suppose(overlap < EXP(-bound))
    ups = [rises(-bound, -value), _same_exp(-bound, -value)]
    far = kernel.ground(value > bound, [*ups, same, *less])
    goals = [
        finite,
        same,
        kernel.discharge(small[0].concl, low),
        kernel.discharge(less[0].concl, far),
    ]
    return close([tokens, bound], hyps, kernel.conj_intro(*goals))


def _same_exp(a: Term, b: Term) -> Thm:
    """Equal numbers have equal exponentials."""
    (same,) = suppose(eq(a, b))
    return kernel.discharge(same.concl, kernel.congr(EXP(a), same))


def _finite_mutants() -> Mapping[str, Term]:
    """Wrong variants of finite_loss."""
    value, overlap = snd(LOSS(tokens)), OVERLAP(tokens)
    return {
        "never negative": forall([tokens], implies(overlap > 0, value >= 0)),
        "bounded by 1": forall([tokens], implies(overlap > 0, value <= 1)),
    }


ANY = "all vocabularies, all reals"
UNROLLED = "all step functions, features and embeddings"


def _seven_mutants() -> Mapping[str, Term]:
    """Wrong variants of seven_steps."""
    answers = COUNT(UNROLL(step, feature, es))
    return {
        "an answer before the first step": forall(
            [step, feature, es], eq(answers, length(EMBEDDING)(es) + 1)
        ),
        "always seven": forall([step, feature, es], eq(answers, 7)),
    }


THEOREMS: Theorems = {
    "seven_steps": Theorem(
        statement=seven_steps,
        proof=_prove_seven,
        scope=UNROLLED,
        mutants=_seven_mutants,
    ),
    "unroll_appends": Theorem(
        statement=unroll_appends,
        proof=_prove_appends,
        scope=f"{UNROLLED}, all lengths",
        mutants=_append_mutants,
    ),
    "infinite_iff_no_overlap": Theorem(
        statement=infinite_iff_no_overlap,
        proof=_prove_infinite,
        scope="all vocabularies, all probabilities ≥ 0",
        mutants=_infinite_mutants,
    ),
    "finite_loss": Theorem(
        statement=finite_loss,
        proof=_prove_finite,
        scope=ANY,
        mutants=_finite_mutants,
        hints={"bounded by 1": {"tokens": ((Fraction(1, 9), Fraction(1)),)}},
    ),
}
