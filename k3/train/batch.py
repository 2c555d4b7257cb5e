"""Loss and gradients of a step's rows, shared among workers of one core each.

Threads and not one wide thread pool: the operations of a small model are too short to
split, and PyTorch frees the interpreter lock inside every one of them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from k3.data import packing
from k3.data.packing import Row
from k3.model import Model
from k3.model.mtp import MTP
from k3.model.taps import Taps
from k3.train import balance
from k3.train.balance import Balance, Tally

NUM_DOMAINS = 256


@dataclass(frozen=True, slots=True)
class Counts:
    """Learned targets of a whole step: next tokens, and those one further."""

    next: int
    mtp: int


@dataclass(frozen=True, slots=True)
class Losses:
    """Shares of a pass in the mean losses of its step, and its sums by domain."""

    next: Float[Tensor, ""]
    mtp: Float[Tensor, ""]
    domains: Float[Tensor, "256 2"]


@dataclass(frozen=True, slots=True)
class Batch:
    """What the rows of a step gave. Losses are in nats a learned target.

    `domains` holds the sum of losses and the number of learned targets of each
    domain; `tally` what tokens that are no padding asked of the experts.
    """

    loss: float
    mtp: float
    domains: Float[Tensor, "256 2"]
    gradients: list[Tensor | None]
    tally: Tally


@dataclass(frozen=True, slots=True)
class Objective:
    """What passes add up: losses over `counts`, the further ones times `weight`."""

    counts: Counts
    balance: Balance
    weight: float = 0.0


def run(
    model: Model,
    parameters: Sequence[nn.Parameter],
    passes: Sequence[Row],
    pool: ThreadPoolExecutor,
    objective: Objective,
) -> Batch:
    """Loss and gradients of the mean over the targets that `objective` counts.

    A pass is one forward and backward. Passes go to the workers in waves and are
    summed in their order, so that the bits do not depend on the number of workers.
    """

    def work(row: Row) -> Batch:
        return _pass(model, parameters, row, objective)

    total: Batch | None = None
    wave = pool._max_workers
    for start in range(0, len(passes), wave):
        for found in pool.map(work, passes[start : start + wave]):
            total = found if total is None else _sum(total, found)
    assert total is not None
    return total


def passes(rows: Sequence[Row], micro_batch: int) -> list[Row]:
    """The rows of a step, `micro_batch` of them at a time in one packed row."""
    return [
        packing.concatenate(rows[start : start + micro_batch])
        for start in range(0, len(rows), micro_batch)
    ]


def count(rows: Sequence[Row], *, mtp: bool = False) -> Counts:
    """How many targets are learned in all of a step's rows."""
    further = sum(int(after(row)[1].sum()) for row in rows) if mtp else 0
    return Counts(sum(int(row.learned.sum()) for row in rows), further)


def after(row: Row) -> tuple[Int[Tensor, "1 T"], Bool[Tensor, "1 T"]]:
    """The token after each target, and whether it is learned and of one document."""
    targets, learned = row.targets.roll(-1, 1), row.learned.roll(-1, 1)
    ends = row.cu_seqlens[1:]
    inside = torch.ones_like(row.learned)
    inside[0, ends[ends > 0] - 1] = False
    return targets, learned & inside


def _pass(
    model: Model, parameters: Sequence[nn.Parameter], row: Row, objective: Objective
) -> Batch:
    taps: Taps = {}
    features = None
    if row.pixels is not None and row.grids is not None:
        features = model.encode_images(row.pixels, row.grids)
    logits = model(row.ids, cu_seqlens=row.cu_seqlens, features=features, taps=taps)
    assert isinstance(logits, Tensor)
    found = losses(model, row, logits, taps, objective)
    total = found.next + objective.weight * found.mtp
    gradients = torch.autograd.grad(total, parameters, allow_unused=True)
    return Batch(
        loss=float(found.next.detach()),
        mtp=float(found.mtp.detach()),
        domains=found.domains,
        gradients=list(gradients),
        tally=objective.balance.tally(taps, row.real),
    )


def losses(
    model: Model,
    row: Row,
    logits: Float[Tensor, "1 T W"],
    taps: Taps,
    objective: Objective,
) -> Losses:
    """What a pass adds to the loss of its step, from its logits and taps."""
    each = _losses(logits, row.targets, row.learned)
    further = _mtp(model, row, taps) if objective.weight else each[:0]
    return Losses(
        next=each.sum() / max(1, objective.counts.next),
        mtp=further.sum() / max(1, objective.counts.mtp),
        domains=_by_domain(each.detach(), row),
    )


def _losses(
    logits: Float[Tensor, "1 T W"],
    targets: Int[Tensor, "1 T"],
    learned: Bool[Tensor, "1 T"],
) -> Float[Tensor, " n"]:
    """-log p of the learned targets; what is not learned is not even read."""
    return F.cross_entropy(logits[learned], targets[learned], reduction="none")


def _mtp(model: Model, row: Row, taps: Taps) -> Float[Tensor, " n"]:
    """Losses of the token after the next one, read from the trunk's last retrieval."""
    layer = model.language_model.model.layers[-1]
    assert isinstance(layer, MTP)
    lens = tuple(row.cu_seqlens.diff().tolist())
    logits = layer(row.targets, taps["output_attn_res"], lens, taps)
    return _losses(logits, *after(row))


def _by_domain(losses: Float[Tensor, " n"], row: Row) -> Float[Tensor, "256 2"]:
    here = row.domains[row.learned].long()
    sums = torch.bincount(here, losses.double(), minlength=NUM_DOMAINS)
    counts = torch.bincount(here, minlength=NUM_DOMAINS).double()
    return torch.stack([sums, counts], -1)


def _sum(total: Batch, found: Batch) -> Batch:
    """Add a pass; gradients are added in place."""
    gradients = [
        b if a is None else a if b is None else a.add_(b)
        for a, b in zip(total.gradients, found.gradients, strict=True)
    ]
    return Batch(
        loss=total.loss + found.loss,
        mtp=total.mtp + found.mtp,
        domains=total.domains + found.domains,
        gradients=gradients,
        tally=balance.pool([total.tally, found.tally]),
    )
