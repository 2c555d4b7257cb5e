"""A step of many ranks: each runs its stage over its rows, sums decide together."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from k3.data.packing import Row
from k3.errors import ConfigError
from k3.model import Model
from k3.model.taps import Taps
from k3.parallel import context, expert, fsdp, part, pipeline, schedule
from k3.parallel.flow import Flow
from k3.parallel.pipeline import Stage
from k3.parallel.ranks import Ranks
from k3.train import balance, batch, trainer
from k3.train.balance import Tally
from k3.train.batch import NUM_DOMAINS, Batch, Counts, Objective
from k3.train.feed import Feed
from k3.train.masters_sharded import ShardedMasters
from k3.train.progress import Progress
from k3.train.recipe import Recipe
from k3.train.trainer import Record, Trainer


@dataclass(slots=True)
class Losses:
    """The loss of each pass on the last stage, for `objective`, and their sums."""

    objective: Objective | None = None
    sums: Tensor = field(default_factory=lambda: _nothing())

    def __call__(self, model: Model, row: Row, logits: Tensor, taps: Taps) -> Tensor:
        """Return what a pass adds to the loss of the step."""
        assert self.objective is not None
        found = batch.losses(model, row, logits, taps, self.objective)
        told = torch.stack([found.next.detach(), found.mtp.detach()]).double()
        self.sums += torch.cat([told, found.domains.flatten()])
        return found.next + self.objective.weight * found.mtp


@dataclass(frozen=True, slots=True)
class Team(Trainer):
    """A Trainer whose step is shared by `ranks`; all of them step at once.

    Losses are means over the learned targets of all ranks, gradients are sums, loads
    are counted together: what one process would do with all rows.
    """

    stage: Stage
    losses: Losses
    ranks: Ranks
    stop: list[bool] = field(default_factory=list)
    """Not empty once this rank was asked to stop; see `agree`."""

    @staticmethod
    def start(
        model: Model,
        recipe: Recipe,
        feed: Feed,
        pool: ThreadPoolExecutor,
        ranks: Ranks,
    ) -> "Team":
        """Give this rank its part of a model that is the same on all of them."""
        check(recipe, ranks)
        stages, losses = ranks.axis("pipeline"), Losses()
        stage = pipeline.cut(model, losses, stages.size, stages.rank)
        expert.split(model, ranks.axis("expert"))
        context.split(model, ranks.axis("context"))
        fsdp.shard(stage, ranks)
        biases = trainer.prepare(model, recipe)
        masters = ShardedMasters(stage, ranks, **trainer.optimizer(recipe))
        given = model, masters, biases, recipe, feed, pool
        return Team(*given, stage, losses, ranks)

    def agree(self, due: bool) -> bool:
        """Whether a snapshot is due, as the first rank says; all ranks at once.

        Raises: KeyboardInterrupt on all ranks where one was asked to stop.
        """
        told = torch.tensor([int(due and self.ranks.leads), len(self.stop)])
        self.ranks.axis("world").sum_(told)
        if told[1]:
            raise KeyboardInterrupt
        return bool(told[0])

    def _gradients(self, rows: list[Row]) -> Batch | None:
        """Run the stage over this rank's rows and add up over all ranks."""
        mtp = bool(self.model.config.text.num_nextn_predict_layers)
        passes = [
            part.part(row, self.ranks.axis("context"), self.model.config)
            for row in batch.passes(rows, self.recipe.micro_batch)
        ]
        counts, pictures = self._counted(rows, passes, mtp)
        if not counts.next:
            return None
        weight = self.recipe.mtp_weight if mtp else 0.0
        self.losses.objective = Objective(counts, self.balance, weight)
        self.losses.sums = _nothing()
        tallies: list[Tally] = []

        def notice(micro: int, loss: Tensor | None, seen: Taps) -> None:
            tallies.append(self.balance.tally(seen, passes[micro].real))

        line = self.ranks.axis("pipeline")
        flow = Flow(self.stage, line, passes, notice, pictures)
        flow.run(schedule.actions("1f1b", line.size, len(passes))[line.rank])
        fsdp.release(self.stage)
        parameters = list(self.masters.parameters.values())
        found = fsdp.gradients(self.stage, parameters, self.ranks)
        tally = balance.pool(tallies)
        self.ranks.axis("trunk").sum_(tally.counts)
        sums = self.ranks.axis("world").sum_(self.losses.sums)
        return Batch(
            loss=float(sums[0]),
            mtp=float(sums[1]),
            domains=sums[2:].view(NUM_DOMAINS, 2),
            gradients=found,
            tally=tally,
        )

    def _counted(
        self, rows: Sequence[Row], passes: Sequence[Row], mtp: bool
    ) -> tuple[Counts, list[bool]]:
        """Learned targets of all ranks, and in which passes any of them sees."""
        own = batch.count(rows, mtp=mtp)
        sees = [int(row.pixels is not None) for row in passes]
        told = self.ranks.axis("trunk").sum_(torch.tensor([own.next, own.mtp, *sees]))
        further, shared = told.tolist(), self.ranks.mesh.context
        counts = Counts(further[0] // shared, further[1] // shared)
        return counts, [bool(count) for count in further[2:]]

    def _move(self, at: Progress, found: Batch) -> Record:
        record = Trainer._move(self, at, found)
        group = self.ranks.axis("pipeline").group
        if group is not None:
            worst = torch.tensor(record["expert_max_over_mean"])
            dist.all_reduce(worst, dist.ReduceOp.MAX, group=group)
            record["expert_max_over_mean"] = float(worst)
        return record

    def _count_tokens(self, rows: list[Row]) -> int:
        own = torch.tensor(Trainer._count_tokens(self, rows))
        return int(self.ranks.axis("trunk").sum_(own)) // self.ranks.mesh.context


def check(recipe: Recipe, ranks: Ranks) -> None:
    """Refuse a recipe whose steps the ranks cannot share evenly."""
    readers, wrong = ranks.mesh.rows, []
    for stage in recipe.stages or (recipe.stage(0),):
        if stage.batch % readers:
            wrong.append(
                "batch must be a multiple of the ranks that read rows, data * expert: "
                f"got {stage.batch} for {readers}"
            )
    if not recipe.balance_bins and recipe.balance == "quantile":
        wrong.append(
            "ranks exchange histograms, not scores: got balance_bins 0 with several "
            "ranks; set it to at least 1"
        )
    further = recipe.config.text.num_nextn_predict_layers and recipe.mtp_weight
    if further and ranks.mesh.context > 1:
        wrong.append(
            "the MTP loss needs whole rows: got context "
            f"{ranks.mesh.context}; set mtp_weight=0 or context=1"
        )
    if wrong:
        raise ConfigError("; ".join(wrong))


def _nothing() -> Tensor:
    return torch.zeros(2 + 2 * NUM_DOMAINS, dtype=torch.float64)
