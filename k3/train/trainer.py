"""One step of a run: rows, gradients, optimizer and balance, or a step not taken."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from k3.data.packing import Row
from k3.model import Model
from k3.model.experts import Experts
from k3.model.mla import MLA
from k3.train import balance, batch, schedule, spikes
from k3.train.balance import Balance
from k3.train.batch import Batch, Objective
from k3.train.feed import Feed
from k3.train.masters import Masters
from k3.train.progress import Progress
from k3.train.recipe import Recipe

Record = dict[str, Any]
EMA = 0.98
NOTHING = "no target of its rows is learned"


@dataclass(frozen=True, slots=True)
class Trainer:
    """What a step needs: the model with its optimizer and balance, rows, workers."""

    model: Model
    masters: Masters
    balance: Balance
    recipe: Recipe
    feed: Feed
    pool: ThreadPoolExecutor

    @staticmethod
    def of(
        model: Model, recipe: Recipe, feed: Feed, pool: ThreadPoolExecutor
    ) -> "Trainer":
        """The optimizer, balance and activations that the recipe names."""
        biases = prepare(model, recipe)
        masters = Masters(model, **optimizer(recipe))
        return Trainer(model, masters, biases, recipe, feed, pool)

    def step(self, at: Progress) -> Record:
        """Do one update, or skip it, and return what there is to say about it."""
        began, stage = time.monotonic(), self.recipe.stage(at.step)
        rows = self.feed.take(at.rows, stage)
        if at.step + 1 < self.recipe.steps:
            self.feed.prepare(at.rows + stage.batch, self.recipe.stage(at.step + 1))
        found = self._gradients(rows)
        at.torn = True
        record = self._skip(at, NOTHING) if found is None else self._move(at, found)
        at.step, at.rows = at.step + 1, at.rows + stage.batch
        tokens = self._count_tokens(rows)
        at.tokens += tokens
        seconds = time.monotonic() - began
        at.seconds += seconds
        at.torn = False
        return {
            "step": at.step,
            "steps": self.recipe.steps,
            **record,
            "ema": at.smooth,
            "tokens": at.tokens,
            "tokens_per_second": tokens / seconds,
            "seconds": at.seconds,
        }

    def agree(self, due: bool) -> bool:
        """Whether to write a snapshot, as all ranks will; see k3.train.team."""
        return due

    def _count_tokens(self, rows: list[Row]) -> int:
        return sum(int(row.real.sum()) for row in rows)

    def _gradients(self, rows: list[Row]) -> Batch | None:
        """The passes of a step; nothing where nothing is learned."""
        mtp = bool(self.model.config.text.num_nextn_predict_layers)
        counts = batch.count(rows, mtp=mtp)
        if not counts.next:
            return None
        weight = self.recipe.mtp_weight if mtp else 0.0
        return batch.run(
            self.model,
            list(self.masters.parameters.values()),
            batch.passes(rows, self.recipe.micro_batch),
            self.pool,
            Objective(counts, self.balance, weight),
        )

    def _move(self, at: Progress, found: Batch) -> Record:
        """Move weights and biases, unless the step is one to be skipped."""
        recipe, reason = self.recipe, ""
        factor = schedule.factor(
            recipe.schedule, at.step, recipe.steps, recipe.warmup, recipe.decay
        )

        def accept(norm: float) -> bool:
            nonlocal reason
            reason = spikes.refusal(found.loss, norm, at.recent, recipe.spike)
            return not reason

        rate = recipe.learning_rate * factor
        norm = self.masters.step(
            found.gradients, rate, recipe.clip, pool=self.pool, accept=accept
        )
        at.recent.add(found.loss, norm)
        record = {
            "loss": _told(found.loss),
            "learning_rate": rate,
            "gradient_norm": _told(norm),
            "expert_max_over_mean": balance.imbalance(found.tally.loads),
            "expert_loads": found.tally.counts[:, :, 0].tolist(),
        }
        if found.mtp:
            record["mtp_loss"] = _told(found.mtp)
        if reason:
            return record | self._skip(at, reason)
        self.balance.update_(found.tally, factor)
        at.skipped_in_a_row = 0
        first = at.step == at.skipped
        at.smooth = found.loss if first else EMA * at.smooth + (1 - EMA) * found.loss
        self._count(at, found.domains)
        return record

    def _skip(self, at: Progress, reason: str) -> Record:
        at.skipped += 1
        at.skipped_in_a_row += 1
        return {"skipped": reason}

    def _count(self, at: Progress, domains: Tensor) -> None:
        """Add losses and targets of each domain to what the next record will say."""
        for number in torch.nonzero(domains[:, 1])[:, 0].tolist():
            name = self.feed.domains[number]
            held = at.domains.setdefault(name, [0.0, 0.0])
            held[0] += float(domains[number, 0])
            held[1] += float(domains[number, 1])


def prepare(model: Model, recipe: Recipe) -> Balance:
    """Set how the model computes in training, and return what balances its experts."""
    for module in model.modules():
        if isinstance(module, Experts):
            module.activations = recipe.activations
        if isinstance(module, MLA):
            module.wide_output = True
    return Balance(
        model,
        recipe.balance,
        bins=recipe.balance_bins,
        rate=recipe.bias_rate,
        ema=recipe.balance_ema,
    )


def optimizer(recipe: Recipe) -> dict[str, Any]:
    """The options of Masters that a recipe names."""
    return {
        "betas": (recipe.beta1, recipe.beta2),
        "weight_decay": recipe.weight_decay,
        "optimizer": recipe.optimizer,
        "qk_clip": recipe.qk_clip,
        "adamw_rate": recipe.adamw_rate,
    }


def _told(value: float) -> float | None:
    """A number that JSON has a word for."""
    return value if math.isfinite(value) else None
