"""Training of a draft: minus the log of its overlap with a frozen target (Eq. 16)."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from k3.checkpoint import draft as folder
from k3.data.packing import Row
from k3.errors import RequestError
from k3.model import Model
from k3.model.draft import Draft, features
from k3.train import schedule

Record = dict[str, float | int]
Rates = list[float]
METRICS = "metrics.jsonl"
Rows = Callable[[int], Sequence[Row]]
"""The rows of a step, a function of its number alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftOptions:
    """How a draft is trained; the temperature of both laws is 1.

    A step reads `batch` rows of `tokens` tokens.
    """

    steps: int = 300
    batch: int = 2
    tokens: int = 512
    learning_rate: float = 2e-3
    warmup: float = 0.02
    decay: float = 0.5
    clip: float = 1.0
    seed: int = 0
    log_steps: int = 10

    def __post_init__(self) -> None:
        """Refuse what cannot start."""
        for name in ("steps", "log_steps", "batch", "tokens"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise RequestError(f"{name} must be at least 1: got {value}")
        if not 0 < self.learning_rate < 1:
            raise RequestError(
                f"learning_rate must be above 0 and below 1: got {self.learning_rate}"
            )


@dataclass(frozen=True, slots=True)
class Overlap:
    """What one pass of the unroll gave: the loss to descend, and how far laws agree.

    `rates[j]` is the mean overlap of step j, the chance that its token is accepted.
    `apart` counts places where the laws have nothing in common: their loss would be
    infinite, so they are left out.
    """

    loss: Tensor
    rates: list[float]
    apart: int


def likelihood_loss(
    target: Float[Tensor, "N W"],
    draft: Float[Tensor, "N draft_W"],
    ids: Int[Tensor, " draft_W"],
) -> Float[Tensor, " N"]:
    """Eq. 16: minus log of the sum over x of min(p(x), q(x)), of logits, in nats.

    `ids` are the target's tokens that the draft can name; the others overlap nothing.
    Infinite where there is no overlap. Matches: spec.speculate.likelihood_loss.
    """
    p = target.float().log_softmax(-1)[:, ids]
    q = draft.float().log_softmax(-1)
    return -torch.minimum(p, q).logsumexp(-1)


def overlap(target: Model, draft: Draft, row: Row, steps: int) -> Overlap:
    """Run the target over a row and the draft's unroll beside it; mean over places.

    A place counts for step j where the target has read token t + 1 + j of the same
    sequence and padding is not its subject.
    """
    lens = tuple(row.cu_seqlens.diff().tolist())
    logits, read = _target(target, draft, row)
    losses, rates, apart = [], [], 0
    for j, made in enumerate(draft.unroll(row.ids, read, lens, steps)):
        at = _places(row, lens, j)
        loss = likelihood_loss(logits[0, at + 1 + j], made[0, at], draft.target_ids())
        good = loss != torch.inf
        apart += int((~good).sum())
        loss = loss[good]
        losses.append(loss.sum() / max(len(loss), 1))
        rates.append(float((-loss.detach()).exp().sum() / max(len(good), 1)))
    return Overlap(torch.stack(losses).sum(), rates, apart)


@torch.no_grad()
def _target(target: Model, draft: Draft, row: Row) -> tuple[Tensor, Tensor]:
    """Logits and features of the frozen target."""
    taps: dict[str, Tensor] = {}
    images = None
    if row.pixels is not None and row.grids is not None:
        images = target.encode_images(row.pixels, row.grids)
    bounds = row.cu_seqlens
    logits = target(row.ids, features=images, cu_seqlens=bounds, taps=taps)
    assert isinstance(logits, Tensor)
    return logits, features(taps, draft.config.layers).to(draft.fc.weight.dtype)


def _places(row: Row, lens: tuple[int, ...], j: int) -> Int[Tensor, " N"]:
    """Positions t whose token t + 1 + j is of their sequence and not padding."""
    fits: Bool[Tensor, " T"] = row.real[0].clone()
    start = 0
    for length in lens:
        fits[max(start, start + length - 1 - j) : start + length] = False
        start += length
    return fits.nonzero()[:, 0]


def run(
    target: Model,
    draft: Draft,
    rows: Rows,
    options: DraftOptions,
    *,
    out: str | Path | None = None,
    report: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """Train a draft by AdamW; the target stays as it is. Returns the records.

    With `out` the folder gets metrics.jsonl as it comes and, at the end, the draft:
    what was cut short is no draft.
    Raises: RequestError when the loss stops being finite.
    """
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        (Path(out) / METRICS).write_text("")
    draft.train().requires_grad_(True)
    own = [p for p in draft.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=0.0, betas=(0.9, 0.95), weight_decay=0.0)
    records: list[Record] = []
    for step in range(options.steps):
        began = time.monotonic()
        factor = schedule.trapezoid(step, options.steps, options.warmup, options.decay)
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * factor
        record: Record = {"step": step + 1}
        record |= _step(target, draft, rows(step), optimizer, options.clip)
        record["seconds"] = time.monotonic() - began
        if (step + 1) % options.log_steps == 0 or step + 1 == options.steps:
            records.append(record)
            _note(record, out)
            report(record)
    draft.requires_grad_(False).eval()
    if out is not None:
        folder.save(draft, out)
    return records


def _note(record: Record, out: str | Path | None) -> None:
    if out is not None:
        with (Path(out) / METRICS).open("a") as metrics:
            metrics.write(json.dumps(record) + "\n")


@torch.no_grad()
def measure(target: Model, draft: Draft, rows: Sequence[Row]) -> tuple[float, Rates]:
    """Loss a position of the unroll in nats, and the overlap at each, of rows."""
    steps = draft.config.num_speculative_steps
    found = [overlap(target, draft, row, steps) for row in rows]
    loss = torch.stack([one.loss for one in found]).mean()
    return float(loss) / steps, _mean(found)


def _mean(found: Sequence[Overlap]) -> Rates:
    rates: Rates = torch.tensor([one.rates for one in found]).mean(0).tolist()
    return rates


def _step(
    target: Model,
    draft: Draft,
    rows: Sequence[Row],
    optimizer: torch.optim.Optimizer,
    clip: float,
) -> Record:
    """Do one update; the loss is per position of the unroll, in nats."""
    steps = draft.config.num_speculative_steps
    found = [overlap(target, draft, row, steps) for row in rows]
    loss = torch.stack([one.loss for one in found]).mean()
    if not bool(torch.isfinite(loss)):
        raise RequestError(
            f"the draft's loss must be finite: got {float(loss.detach())}; lower "
            "learning_rate and start again"
        )
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(draft.parameters(), clip)
    optimizer.step()
    record = {"loss": float(loss.detach()) / steps}
    record |= {f"overlap_{j + 1}": rate for j, rate in enumerate(_mean(found))}
    return record | {"apart": sum(one.apart for one in found)}
