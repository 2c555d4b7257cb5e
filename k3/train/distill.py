"""MOPD (Eq. 15): the student's own tokens, rewarded by the matching teacher."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.config.runs import DOMAINS, EFFORTS
from k3.errors import RequestError


@dataclass(frozen=True, slots=True)
class Teacher:
    """The domain and effort that a teacher was trained for."""

    domain: str
    effort: str

    def __post_init__(self) -> None:
        """Refuse a domain or effort that is not one of nine."""
        if self.domain not in DOMAINS or self.effort not in EFFORTS:
            raise RequestError(
                f"a teacher is one of {', '.join(DOMAINS)} by {', '.join(EFFORTS)}: "
                f"got {self.domain!r} and {self.effort!r}"
            )


TEACHERS = tuple(Teacher(domain, effort) for domain in DOMAINS for effort in EFFORTS)


def pick(weights: Mapping[Teacher, float], number: float) -> Teacher:
    """The teacher that a number uniform in [0, 1) falls to, by weight.

    Raises: RequestError without a positive weight.
    """
    total = sum(weights.values())
    if not total > 0 or min(weights.values()) < 0:
        raise RequestError(
            f"teachers are drawn by weights of at least 0, not all 0: got {weights}"
        )
    place = number * total
    for teacher, weight in weights.items():
        place -= weight
        if place < 0:
            return teacher
    return [teacher for teacher, weight in weights.items() if weight][-1]


def reward(
    teacher: Float[Tensor, " T"], student: Float[Tensor, " T"], limit: float
) -> Float[Tensor, " T"]:
    """Eq. 15: clip(log p_teacher - log p_student, +-R), without a gradient.

    Of log-probabilities of the tokens that the student wrote. Matches:
    spec.rl.reward.
    """
    if not limit > 0:
        raise RequestError(f"the limit R must be above 0: got {limit}")
    return (teacher - student).detach().clamp(-limit, limit)


def on_policy_loss(
    now: Float[Tensor, " T"],
    then: Float[Tensor, " T"],
    teacher: Float[Tensor, " T"],
    limit: float,
) -> Float[Tensor, " T"]:
    """Loss of each written token: -r log p of the student, r of the student now.

    `then` weighs tokens that older weights of the student sampled, up to 2.
    """
    weight = (now - then).detach().exp().clamp(max=2.0)
    return -weight * reward(teacher, now, limit) * now


def dense_loss(
    student: Float[Tensor, "T W"],
    ids: Int[Tensor, "T k"],
    teacher: Float[Tensor, "T k"],
) -> Float[Tensor, " T"]:
    """The comparison: KL from the teacher's k likeliest tokens, rest as one token.

    `student` are logits, `teacher` log-probabilities of `ids`.
    """
    each = student.float().log_softmax(-1)
    p, q = teacher.exp(), each.gather(-1, ids)
    kept = (p * (teacher - q)).sum(-1)
    if ids.shape[-1] == each.shape[-1]:
        return kept
    left = (1 - p.sum(-1)).clamp(min=1e-9)
    # One less the sum of q is 0 in fp32 where the student is sure: no gradient.
    rest = each.scatter(-1, ids, -torch.inf).logsumexp(-1)
    return kept + left * (left.log() - rest)


def retention(
    student: Float[Tensor, " n"],
    teacher: Float[Tensor, " n"],
    start: Float[Tensor, " n"],
) -> Float[Tensor, " n"]:
    """The share of each teacher's gain over the start that the student has."""
    gain = teacher - start
    return torch.where(gain != 0, (student - start) / gain, torch.ones_like(gain))
