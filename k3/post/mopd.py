"""MOPD (Eq. 15): a student learns from what it writes, scored by matching teachers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.model import Model
from k3.model.taps import Taps
from k3.post import lesson, policy
from k3.post.course import teacher_of
from k3.post.lesson import Lesson
from k3.post.policy import Objective
from k3.train import distill
from k3.train.trajectory import Trajectory


def _nothing() -> Tensor:
    return torch.zeros(0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scored(Lesson):
    """A sample with what its teacher says of its n written tokens.

    `teacher` are their log-probabilities; `likely` those of the k tokens `likely_ids`
    that the teacher holds likeliest there, k 0 for the on-policy loss.
    """

    teacher: Float[Tensor, " n"] = field(default_factory=_nothing)
    likely_ids: Int[Tensor, "n k"] = field(default_factory=_nothing)
    likely: Float[Tensor, "n k"] = field(default_factory=_nothing)


class Scoring:
    """Makes lessons of samples: each is read by the teacher that it was drawn for.

    Passes have about `tokens` tokens; `dense` is the number of likeliest tokens kept.
    """

    def __init__(
        self, teachers: Mapping[str, Model], tokens: int, dense: int = 0
    ) -> None:
        self.teachers, self.tokens, self.dense = teachers, tokens, dense

    def __call__(
        self, rewarded: Sequence[tuple[list[Trajectory], Sequence[float]]]
    ) -> list[Scored]:
        """The lessons of groups, whatever their environments thought of them."""
        theirs: dict[str, list[Lesson]] = {}
        for group, rewards in rewarded:
            made = lesson.lessons(group, rewards, every=True)
            theirs.setdefault(teacher_of(group[0].group), []).extend(made)
        return [
            one
            for name, made in theirs.items()
            for pack in lesson.packed(made, self.tokens)
            for one in self._scored(self.teachers[name], pack)
        ]

    @torch.no_grad()
    def _scored(self, teacher: Model, pack: Sequence[Lesson]) -> list[Scored]:
        logits, ids = policy.predicted(teacher, pack)
        each = logits.float().log_softmax(-1)
        own = each.gather(-1, ids[:, None])[:, 0]
        likely, likely_ids = each.topk(self.dense, -1)
        counts = [int(one.written.sum()) for one in pack]
        parts = (x.split(counts) for x in (own, likely_ids, likely))
        return [
            Scored(
                **{f.name: getattr(one, f.name) for f in fields(one)},
                teacher=a,
                likely_ids=b,
                likely=c,
            )
            for one, a, b, c in zip(pack, *parts, strict=True)
        ]


def objective(limit: float, dense: int = 0) -> Objective:
    """What the student descends: Eq. 15 with R = limit, or the dense loss."""
    return _dense if dense else _on_policy(limit)


def _on_policy(limit: float) -> Objective:
    def found(
        model: Model, lessons: Sequence[Scored], taps: Taps | None
    ) -> tuple[Tensor, Tensor]:
        now = policy.logprobs(model, lessons, taps)
        then = torch.cat([x.then[x.written] for x in lessons])
        teacher = torch.cat([x.teacher for x in lessons])
        return distill.on_policy_loss(now, then, teacher, limit), now

    return found


def _dense(
    model: Model, lessons: Sequence[Scored], taps: Taps | None
) -> tuple[Tensor, Tensor]:
    logits, ids = policy.predicted(model, lessons, taps)
    now = logits.log_softmax(-1).gather(-1, ids[:, None])[:, 0]
    likely_ids = torch.cat([x.likely_ids for x in lessons])
    likely = torch.cat([x.likely for x in lessons])
    return distill.dense_loss(logits, likely_ids, likely), now.detach()
