"""Post-training rules: the effort budget and the verbosity of the first candidate."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    close,
    have,
    lemma,
    suppose,
    unfold,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import REAL, named
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    implies,
    ite,
    real,
    var,
)
from k3.logic.terms import Term
from k3.proof.theorem import Theorem, Theorems

reward, used, budget, factor, more = (
    var(name, REAL) for name in ("reward", "used", "budget", "factor", "more")
)
GIVEN = [used, budget, factor]
PAST = factor * budget < used
BUDGETED = define("budgeted[budget]", [reward, *GIVEN], ite(PAST, real(-1), reward))

VERDICT = named("Verdict")
judged, second = var("judged", VERDICT), var("second", VERDICT)
size, baseline = var("length", REAL), var("baseline", REAL)
LONG = factor * baseline < size
RULED = define(
    "ruled[budget]", [judged, second, size, baseline, factor], ite(LONG, second, judged)
)


def penalized_iff_past_budget() -> Term:
    """A reward other than −1 becomes −1 exactly when more than factor · budget tokens
    were used.
    """
    value = eq(BUDGETED(reward, *GIVEN), -1)
    fair = ~eq(reward, -1)
    return forall([reward, *GIVEN], implies(fair, eq(value, PAST)))


@lemma
def _prove_penalized() -> Thm:
    hyps = suppose(~eq(reward, -1))
    goal = eq(eq(BUDGETED(reward, *GIVEN), -1), PAST)
    law = unfold(BUDGETED, reward, *GIVEN)
    return close([reward, *GIVEN], hyps, have(goal, law, *hyps))


def _penalized_mutants() -> Mapping[str, Term]:
    value = eq(BUDGETED(reward, *GIVEN), -1)
    fair = ~eq(reward, -1)
    return {
        "also at the budget": forall(
            [reward, *GIVEN], implies(fair, eq(value, factor * budget <= used))
        ),
        "any reward": forall([reward, *GIVEN], eq(value, PAST)),
        "without the factor": forall(
            [reward, *GIVEN], implies(fair, eq(value, budget < used))
        ),
    }


def unchanged_within_budget() -> Term:
    """Up to factor · budget tokens, the boundary included, the reward stays."""
    kept = eq(BUDGETED(reward, *GIVEN), reward)
    return forall([reward, *GIVEN], implies(used <= factor * budget, kept))


@lemma
def _prove_unchanged() -> Thm:
    hyps = suppose(used <= factor * budget)
    goal = eq(BUDGETED(reward, *GIVEN), reward)
    th = have(goal, unfold(BUDGETED, reward, *GIVEN), *hyps)
    return close([reward, *GIVEN], hyps, th)


def bounded() -> Term:
    """A reward in [−1, 1] stays in [−1, 1]."""
    value = BUDGETED(reward, *GIVEN)
    inside = conj(reward >= -1, reward <= 1)
    return forall([reward, *GIVEN], implies(inside, conj(value >= -1, value <= 1)))


@lemma
def _prove_bounded() -> Thm:
    hyps = suppose(conj(reward >= -1, reward <= 1))
    value = BUDGETED(reward, *GIVEN)
    goal = conj(value >= -1, value <= 1)
    th = have(goal, unfold(BUDGETED, reward, *GIVEN), *hyps)
    return close([reward, *GIVEN], hyps, th)


def _bounded_mutants() -> Mapping[str, Term]:
    value = BUDGETED(reward, *GIVEN)
    inside = conj(reward >= 0, reward <= 1)
    return {
        "never below 0": forall([reward, *GIVEN], implies(inside, conj(value >= 0)))
    }


def idempotent() -> Term:
    """Applying the rule twice is applying it once."""
    once = BUDGETED(reward, *GIVEN)
    return forall([reward, *GIVEN], eq(BUDGETED(once, *GIVEN), once))


@lemma
def _prove_idempotent() -> Thm:
    once = BUDGETED(reward, *GIVEN)
    laws = [unfold(BUDGETED, reward, *GIVEN), unfold(BUDGETED, once, *GIVEN)]
    return kernel.generalize(
        [reward, *GIVEN], have(eq(BUDGETED(once, *GIVEN), once), *laws)
    )


def longer_never_pays() -> Term:
    """With a reward of at least −1, using more tokens never raises the result."""
    less, grown = BUDGETED(reward, *GIVEN), BUDGETED(reward, more, budget, factor)
    every = [reward, *GIVEN, more]
    return forall(every, implies(conj(reward >= -1, used <= more), grown <= less))


@lemma
def _prove_longer() -> Thm:
    hyps = suppose(conj(reward >= -1, used <= more))
    less, grown = BUDGETED(reward, *GIVEN), BUDGETED(reward, more, budget, factor)
    laws = [
        unfold(BUDGETED, reward, *GIVEN),
        unfold(BUDGETED, reward, more, budget, factor),
    ]
    return close([reward, *GIVEN, more], hyps, have(grown <= less, *laws, *hyps))


def _longer_mutants() -> Mapping[str, Term]:
    less, grown = BUDGETED(reward, *GIVEN), BUDGETED(reward, more, budget, factor)
    every = [reward, *GIVEN, more]
    return {
        "rewards below −1": forall(every, implies(used <= more, grown <= less)),
        "strictly lower": forall(
            every, implies(conj(reward >= -1, used < more), grown < less)
        ),
    }


RULE = [judged, second, size, baseline, factor]


def first_wins_only_within_length() -> Term:
    """If the verdict is not `second`, the first candidate's length is at most
    factor · baseline, and the verdict is what the judge said.
    """
    value = RULED(*RULE)
    fair = conj(size <= factor * baseline, eq(value, judged))
    return forall(RULE, implies(~eq(value, second), fair))


@lemma
def _prove_first_wins() -> Thm:
    value = RULED(*RULE)
    hyps = suppose(~eq(value, second))
    goal = conj(size <= factor * baseline, eq(value, judged))
    law = unfold(RULED, *RULE)
    ths = [kernel.ground(g, [law, *hyps]) for g in goal.args]
    return close(RULE, hyps, kernel.conj_intro(*ths))


def _first_wins_mutants() -> Mapping[str, Term]:
    value = RULED(*RULE)
    fair = size < factor * baseline
    return {
        "strictly shorter": forall(RULE, implies(~eq(value, second), fair)),
        "the baseline without its factor": forall(
            RULE, implies(~eq(value, second), size <= baseline)
        ),
    }


def loses_when_longer() -> Term:
    """A first candidate longer than factor · baseline loses, whatever the judge said;
    for a judge who preferred the first, that is the only way to lose.
    """
    value = RULED(*RULE)
    prefers = ~eq(judged, second)
    only = implies(prefers, eq(eq(value, second), LONG))
    return forall(RULE, conj(implies(LONG, eq(value, second)), only))


@lemma
def _prove_loses() -> Thm:
    law = unfold(RULED, *RULE)
    goals = [
        implies(LONG, eq(RULED(*RULE), second)),
        implies(~eq(judged, second), eq(eq(RULED(*RULE), second), LONG)),
    ]
    ths = [kernel.ground(g, [law]) for g in goals]
    return kernel.generalize(RULE, kernel.conj_intro(*ths))


def _loses_mutants() -> Mapping[str, Term]:
    value = RULED(*RULE)
    return {"any judge": forall(RULE, eq(eq(value, second), LONG))}


REWARDS = "all real rewards, token counts, budgets and factors"
VERDICTS = "all verdict types, all lengths, baselines and factors"


def _unchanged_mutants() -> Mapping[str, Term]:
    """Wrong variants of unchanged_within_budget."""
    kept, limit = eq(BUDGETED(reward, *GIVEN), reward), factor * budget
    return {
        "one token past the budget": forall(
            [reward, *GIVEN], implies(used <= limit + 1, kept)
        ),
        "without the factor": forall([reward, *GIVEN], implies(used <= budget, kept)),
    }


def _idempotent_mutants() -> Mapping[str, Term]:
    """Wrong variants of idempotent."""
    once = BUDGETED(reward, *GIVEN)
    return {
        "the penalty adds up": forall(
            [reward, *GIVEN], eq(BUDGETED(once, *GIVEN), once + once)
        ),
        "a smaller budget": forall(
            [reward, *GIVEN], eq(BUDGETED(once, used, budget - 1, factor), once)
        ),
    }


THEOREMS: Theorems = {
    "penalized_iff_past_budget": Theorem(
        statement=penalized_iff_past_budget,
        proof=_prove_penalized,
        scope=REWARDS,
        mutants=_penalized_mutants,
        hints={"also at the budget": {"factor": 1, "budget": 2, "used": 2}},
    ),
    "unchanged_within_budget": Theorem(
        statement=unchanged_within_budget,
        proof=_prove_unchanged,
        scope=REWARDS,
        mutants=_unchanged_mutants,
    ),
    "bounded": Theorem(
        statement=bounded,
        proof=_prove_bounded,
        scope=REWARDS,
        mutants=_bounded_mutants,
    ),
    "idempotent": Theorem(
        statement=idempotent,
        proof=_prove_idempotent,
        scope=REWARDS,
        mutants=_idempotent_mutants,
    ),
    "longer_never_pays": Theorem(
        statement=longer_never_pays,
        proof=_prove_longer,
        scope=REWARDS,
        mutants=_longer_mutants,
    ),
    "first_wins_only_within_length": Theorem(
        statement=first_wins_only_within_length,
        proof=_prove_first_wins,
        scope=VERDICTS,
        mutants=_first_wins_mutants,
        hints={"strictly shorter": {"factor": 1, "baseline": 2, "length": 2}},
    ),
    "loses_when_longer": Theorem(
        statement=loses_when_longer,
        proof=_prove_loses,
        scope=VERDICTS,
        mutants=_loses_mutants,
    ),
}
