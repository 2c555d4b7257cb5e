"""Reinforcement learning on finished groups: advantages, weights, budgets, the loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from k3.errors import RequestError

EPSILON = 1e-6
_FAR = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyOptions:
    """How far one update may go.

    `most_weight` caps the importance weight of a token that older weights sampled;
    `penalty` is the weight of (log ratio)^2 / 2 of each token, `anchor` that of its
    `divergence` from a frozen policy.
    """

    most_weight: float = 2.0
    penalty: float = 0.05
    anchor: float = 0.0
    normalize: bool = True

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not self.most_weight >= 1:
            raise RequestError(
                f"most_weight must be at least 1: got {self.most_weight}"
            )
        for name in ("penalty", "anchor"):
            if not getattr(self, name) >= 0:
                raise RequestError(
                    f"{name} must be at least 0: got {getattr(self, name)}"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Post-training: reward -1 past factor x baseline tokens, and past `most`.

    The factor goes from `start` to `end` over `steps` iterations, linearly.
    """

    start: float
    end: float
    steps: int
    most: int

    def factor(self, iteration: int) -> float:
        """The factor of a 0-based iteration."""
        done = min(1.0, iteration / max(1, self.steps))
        return self.start + (self.end - self.start) * done

    def apply(self, reward: float, used: int, baseline: float, iteration: int) -> float:
        """The reward, or -1 past the budget. Matches: spec.rl.budgeted."""
        over = used > self.factor(iteration) * baseline or used > self.most
        return -1.0 if over else reward


def verbose(judged: str, length: int, baseline: float, factor: float) -> str:
    """Post-training: the first candidate loses once it is too long.

    `judged` is "first", "second" or "tie". Matches: spec.rl.verdict.
    """
    return "second" if length > factor * baseline else judged


def advantages(rewards: Sequence[float], *, normalize: bool = True) -> list[float]:
    """Rewards of a group less their mean, over their deviation if it is not zero."""
    if not rewards:
        return []
    mean = sum(rewards) / len(rewards)
    centred = [reward - mean for reward in rewards]
    if not normalize:
        return centred
    deviation = (sum(x * x for x in centred) / len(centred)) ** 0.5
    return [x / deviation if deviation > EPSILON else 0.0 for x in centred]


def loss(
    now: Float[Tensor, " T"],
    then: Float[Tensor, " T"],
    advantage: Float[Tensor, " T"],
    options: PolicyOptions,
) -> Float[Tensor, " T"]:
    """Loss of each written token: -w A log p + penalty (log ratio)^2 / 2.

    `now` are log-probabilities under the weights that learn, `then` those recorded
    when the token was sampled. w = min(ratio, most_weight) carries no gradient, so
    that a token of older weights counts as it would under the present ones.
    """
    ratio = now - then
    weight = ratio.detach().exp().clamp(max=options.most_weight)
    return -weight * advantage * now + options.penalty * ratio.square() / 2


def divergence(
    now: Float[Tensor, " T"], frozen: Float[Tensor, " T"]
) -> Float[Tensor, " T"]:
    """An estimate of KL(policy | frozen) at each token that the policy sampled.

    exp(d) - 1 - d of d = frozen - now, log-probabilities of the token: at least 0, and
    0 where they agree. Past 20 nats it goes on as its tangent there, since exp(d) soon
    is no number of fp32. Source: the low-variance estimator of Schulman, "Approximating
    KL divergence" (2020).
    """
    gap = frozen - now
    near = gap.clamp(max=_FAR)
    return near.exp() - 1 - near + (gap - _FAR).clamp(min=0) * math.expm1(_FAR)


def parity(
    trained: Float[Tensor, " T"], sampled: Float[Tensor, " T"]
) -> dict[str, float]:
    """How far trainer and sampler are apart on tokens of the same weights.

    "mean" and "max" are of absolute differences of log-probabilities; "kl" estimates
    the divergence by exp(d) - 1 - d, d = trained - sampled.
    """
    if not len(trained):
        return {"mean": 0.0, "max": 0.0, "kl": 0.0}
    gap = (trained.double() - sampled.double()).detach()
    return {
        "mean": float(gap.abs().mean()),
        "max": float(gap.abs().max()),
        "kl": float((gap.exp() - 1 - gap).mean()),
    }


def returns(
    rewards: Sequence[float], lengths: Sequence[int], *, normalize: bool = True
) -> Float[Tensor, " T"]:
    """The advantage of each written token of a group, sample after sample."""
    each = advantages(rewards, normalize=normalize)
    return torch.cat(
        [torch.full((n,), a) for a, n in zip(each, lengths, strict=True)]
        or [torch.zeros(0)]
    )
