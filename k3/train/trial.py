"""Short runs in memory, to be compared: no files, the same rows for every one."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from k3.data.packing import Row
from k3.model import Model
from k3.train import balance, pretrain, workers
from k3.train.feed import Feed, Rows
from k3.train.progress import Progress
from k3.train.recipe import Recipe
from k3.train.trainer import Record, Trainer

Prepare = Callable[[Model], None]


def run(
    recipe: Recipe,
    data: Callable[[int], Rows],
    prepare: Prepare = lambda model: None,
) -> tuple[Model, list[Record]]:
    """Train a fresh model of the recipe; returns it and the record of every step.

    A record also holds the loads of the experts, by layer.
    """
    model = pretrain.fresh(recipe)
    prepare(model)
    at, records = Progress(), []
    with workers.pool(recipe.workers) as pool, Feed(data) as feed:
        trainer = Trainer.of(model, recipe, feed, pool)
        while at.step < recipe.steps:
            record = trainer.step(at)
            loads = trainer.balance.loads
            records.append(record | {"loads": [] if loads is None else loads.tolist()})
    return model, records


def unbalance(model: Model, spread: float = 0.5) -> None:
    """Give every router a bias from -spread to spread: an unbalanced start."""
    for bias in balance.biases(model):
        bias.copy_(torch.linspace(-spread, spread, len(bias)))


@torch.no_grad()
def loss(model: Model, rows: Sequence[Row]) -> float:
    """Mean loss of all learned targets of the rows, in nats."""
    total, count = 0.0, 0
    for row in rows:
        logits = model(row.ids, cu_seqlens=row.cu_seqlens)
        assert isinstance(logits, Tensor)
        chosen, targets = logits[row.learned], row.targets[row.learned]
        total += float(F.cross_entropy(chosen, targets, reduction="sum"))
        count += int(row.learned.sum())
    return total / count
