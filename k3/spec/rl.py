"""Post-training rules: distillation reward, effort budget, verbosity, teachers."""

from itertools import product
from typing import Literal

from k3.spec import ops
from k3.spec.ops import Array, Number

DOMAINS = ("general", "agentic", "coding")
EFFORTS = ("low", "high", "max")
# One expert policy, and one teacher, for each domain and effort: nine.
TEACHERS = tuple(product(DOMAINS, EFFORTS))
Verdict = Literal["first", "second", "tie"]


def clip(value: Array, limit: Number) -> Array:
    """max(-limit, min(limit, value)), for limit >= 0."""
    top = ops.lift(value, limit)
    return ops.maximum(ops.minimum(value, top), -top)


def reward(teacher: Array, student: Array, limit: Number) -> Array:
    """Eq. 15: clip(log(p_teacher / p_student), +-R), for p in (0, 1].

    In [-R, R], and 0 iff the probabilities are equal (R > 0). The student's
    probability carries no gradient.
    """
    return clip(ops.log(teacher / student), limit)


def budgeted(value: Array, used: int, budget: int, factor: Number) -> Array:
    """Post-training: the reward, or -1 once used > factor * budget tokens."""
    return value * 0 - 1 if used > factor * budget else value


def verdict(judged: Verdict, length: int, baseline: int, factor: Number) -> Verdict:
    """Post-training: the first candidate loses once its length > factor * baseline."""
    return "second" if length > factor * baseline else judged


def rollout_ends(complete: int, prompts: int, samples: int, share: Number) -> bool:
    """Post-training: a partial rollout stops with share * N * K samples complete."""
    return complete >= share * prompts * samples
