"""One update of a policy from groups of finished samples."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3.config import settings
from k3.model import Model
from k3.model.taps import Taps
from k3.post import replay
from k3.post.lesson import Lesson as Lesson
from k3.post.lesson import lessons as lessons
from k3.post.lesson import packed as packed
from k3.post.replay import Replay
from k3.train import balance, rl
from k3.train.balance import Balance, Tally
from k3.train.masters import Masters
from k3.train.rl import PolicyOptions

Record = dict[str, Any]
NOT_FINITE = "the gradient is not finite"
Objective = Callable[[Model, Sequence[Any], Taps | None], tuple[Tensor, Tensor]]
"""Losses [n] of the written tokens of lessons, and their log-probabilities now [n]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateOptions:
    """How groups become updates.

    `tokens` is about the size of a pass; `steps` optimizer steps share the samples of
    an update; `clip` bounds the norm of each step's gradient. `move_biases` lets the
    experts' balance go on; else their biases stay as they are. `replay` takes the
    experts that the sampler took, and leaves biases alone whatever `move_biases` says.
    """

    policy: PolicyOptions = field(default_factory=PolicyOptions)
    learning_rate: float = 1e-3
    tokens: int = 2048
    steps: int = 1
    clip: float = 1.0
    move_biases: bool = False
    replay: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not be learned with."""
        settings.check(self, _RULES)


_RULES = [
    *((name, *settings.POSITIVE) for name in ("tokens", "steps")),
    *((name, *settings.ABOVE_ZERO) for name in ("learning_rate", "clip")),
]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What one pass gave: gradients, and log-probabilities of its written tokens."""

    loss: float
    gradients: list[Tensor | None]
    now: Float[Tensor, " n"]
    tally: Tally | None


class Policy:
    """A model that learns from samples by an objective, that of RL if none is given."""

    def __init__(
        self,
        model: Model,
        masters: Masters,
        balance: Balance,
        options: UpdateOptions,
        *,
        objective: Objective | None = None,
    ) -> None:
        self.model, self.masters, self.balance = model, masters, balance
        self.options, self.replay = options, Replay(model)
        self.objective = objective or reinforced(options.policy)

    def update(
        self,
        lessons: Sequence[Lesson],
        version: int,
        pool: ThreadPoolExecutor,
        rate: float | None = None,
    ) -> Record:
        """Learn from lessons under weights of this version; say what it came to.

        Lessons in a random order that depends on the version alone. `rate` takes the
        place of the options' learning rate.
        """
        rate = self.options.learning_rate if rate is None else rate
        order = list(lessons)
        random.Random(version).shuffle(order)
        size = -(-len(order) // self.options.steps) or 1
        records = [
            self._step(
                order[start : start + size], version, pool, rate, first=not start
            )
            for start in range(0, len(order), size)
        ]
        return _joined(records)

    @torch.no_grad()
    def look(self, lessons: Sequence[Lesson], version: int) -> Record:
        """What `update` measures, of lessons that nothing is learned from."""
        with self.replay.attached(on=self.options.replay):
            recorded = replay.joined(lessons) if self.options.replay else None
            with self.replay.taking(recorded):
                now = logprobs(self.model, lessons)
        return {"learned_tokens": 0} | measure(lessons, now, version)

    def _step(
        self,
        lessons: Sequence[Lesson],
        version: int,
        pool: ThreadPoolExecutor,
        rate: float,
        *,
        first: bool,
    ) -> Record:
        """One optimizer step; only the first one's parity is of the same weights."""
        count = sum(int(lesson.written.sum()) for lesson in lessons)
        packs = list(packed(lessons, self.options.tokens))

        def work(pack: Sequence[Lesson]) -> Found:
            return self._pass(pack, count)

        total: list[Tensor | None] = [None] * len(self.masters.parameters)
        loss, now, tallies = 0.0, [], []
        with self.replay.attached(on=self.options.replay):
            for found in _waves(pool, work, packs):
                added = zip(total, found.gradients, strict=True)
                total = [_sum(a, b) for a, b in added]
                loss += found.loss
                now.append(found.now)
                tallies += [] if found.tally is None else [found.tally]
        norm = self.masters.step(total, rate, self.options.clip, pool=pool)
        if tallies and math.isfinite(norm):
            self.balance.update_(balance.pool(tallies))
        record: Record = {"loss": loss, "gradient_norm": norm, "learned_tokens": count}
        if not math.isfinite(norm) or not math.isfinite(loss):
            # JSON has no word for either; the masters have not moved.
            record |= {"loss": 0.0, "gradient_norm": 0.0, "skipped": NOT_FINITE}
        said = measure([x for pack in packs for x in pack], torch.cat(now), version)
        return record | (said if first else {"kl": said["kl"]})

    def _pass(self, lessons: Sequence[Lesson], count: int) -> Found:
        """Loss and gradients of samples behind one another in one row."""
        counts = self.options.move_biases and not self.options.replay
        taps: Taps | None = {} if counts else None
        recorded = replay.joined(lessons) if self.options.replay else None
        with self.replay.taking(recorded):
            each, now = self.objective(self.model, lessons, taps)
        loss = each.sum() / count
        parameters: list[nn.Parameter] = list(self.masters.parameters.values())
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        tally = None if taps is None else self.balance.tally(taps)
        return Found(float(loss.detach()), list(gradients), now.detach(), tally)


def reinforced(options: PolicyOptions) -> Objective:
    """Each written token's advantage, held near the weights that sampled it.

    Lessons with the word of a frozen policy are held near that one too.
    """

    def objective(
        model: Model, lessons: Sequence[Lesson], taps: Taps | None
    ) -> tuple[Tensor, Tensor]:
        now = logprobs(model, lessons, taps)
        then = torch.cat([x.then[x.written] for x in lessons])
        advantage = torch.cat(
            [torch.full((int(x.written.sum()),), x.advantage) for x in lessons]
        )
        each = rl.loss(now, then, advantage, options)
        if (held := frozen(lessons)) is not None:
            each = each + options.anchor * rl.divergence(now, held)
        return each, now

    return objective


def logprobs(
    model: Model, lessons: Sequence[Lesson], taps: Taps | None = None
) -> Float[Tensor, " n"]:
    """Log-probabilities of all written tokens under the model, sample after sample."""
    logits, ids = predicted(model, lessons, taps)
    return logits.log_softmax(-1).gather(-1, ids[:, None])[:, 0]


def predicted(
    model: Model, lessons: Sequence[Lesson], taps: Taps | None = None
) -> tuple[Float[Tensor, "n W"], Int[Tensor, " n"]]:
    """The logits that each written token was to be drawn from, and the tokens."""
    ids = torch.cat([x.tokens for x in lessons])
    ends = torch.tensor([0, *map(len, lessons)]).cumsum(0)
    places = torch.cat([x.written for x in lessons]).nonzero()[:, 0]
    logits = model(ids[None], cu_seqlens=ends, taps=taps)
    assert isinstance(logits, Tensor)
    return logits[0, places - 1], ids[places]


def frozen(lessons: Sequence[Lesson]) -> Float[Tensor, " n"] | None:
    """What a frozen policy says of all written tokens, where it was asked."""
    said = [x.frozen for x in lessons if x.frozen is not None]
    return torch.cat(said) if said and len(said) == len(lessons) else None


def measure(
    lessons: Sequence[Lesson], now: Float[Tensor, " n"], version: int
) -> Record:
    """Parity on tokens of this version, staleness, and how far the policy has moved.

    "kl" estimates the divergence of the weights that sampled from those that learn,
    over all tokens; "anchor" that of those that learn from a frozen policy.
    """
    then = torch.cat([x.then[x.written] for x in lessons])
    versions = torch.cat([x.versions[x.written] for x in lessons])
    same = versions == version
    age = (version - versions).double()
    held = frozen(lessons)
    anchor = {} if held is None else {"anchor": rl.parity(held, now)["kl"]}
    return anchor | {
        "parity": rl.parity(now[same], then[same]) | {"tokens": int(same.sum())},
        "staleness": {"mean": float(age.mean()), "max": int(age.max())},
        "kl": rl.parity(now, then)["kl"],
    }


def _waves(
    pool: ThreadPoolExecutor, work: Any, packs: Sequence[Any]
) -> Iterator[Found]:
    """Results in their order, no more of them at a time than there are workers."""
    wave = pool._max_workers
    for start in range(0, len(packs), wave):
        yield from pool.map(work, packs[start : start + wave])


def _sum(total: Tensor | None, found: Tensor | None) -> Tensor | None:
    if total is None or found is None:
        return found if total is None else total
    return total.add_(found)


def _joined(records: Sequence[Record]) -> Record:
    """The first step's record; losses, norms and divergences are means of all."""
    if not records:
        return {"learned_tokens": 0}
    means = {
        key: sum(r[key] for r in records) / len(records)
        for key in ("loss", "gradient_norm", "kl")
    }
    tokens = sum(r["learned_tokens"] for r in records)
    skipped = {"skipped": NOT_FINITE} if any("skipped" in r for r in records) else {}
    return {**records[0], **means, **skipped, "learned_tokens": tokens}
