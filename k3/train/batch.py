"""Loss and gradients of a batch, shared among workers of one core each.

Threads and not one wide thread pool: the operations of a small model are too short to
split, and PyTorch frees the interpreter lock inside every one of them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3.model import Model


@dataclass(frozen=True, slots=True)
class Batch:
    """Mean loss in nats a token, gradients, and how often each expert was chosen."""

    loss: float
    gradients: list[Tensor | None]
    loads: Float[Tensor, "layers E"]


def run(
    model: Model,
    parameters: Sequence[nn.Parameter],
    rows: Int[Tensor, "B T1"],
    pool: ThreadPoolExecutor,
    workers: int,
) -> Batch:
    """Next-token loss over rows of inputs and targets; the sum order is fixed."""
    parts = list(
        pool.map(lambda part: _part(model, parameters, part), rows.chunk(workers))
    )
    share = [len(part) / len(rows) for part in rows.chunk(workers)]
    gradients = [
        _weighted(found, share)
        for found in zip(*(part.gradients for part in parts), strict=True)
    ]
    loss = sum(s * part.loss for s, part in zip(share, parts, strict=True))
    return Batch(loss, gradients, torch.stack([p.loads for p in parts]).sum(0))


def _part(
    model: Model, parameters: Sequence[nn.Parameter], rows: Int[Tensor, "B T1"]
) -> Batch:
    taps: dict[str, Tensor] = {}
    logits = model(rows[:, :-1], taps=taps)
    assert isinstance(logits, Tensor)
    loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    chosen = [v for name, v in taps.items() if name.endswith(".index")]
    num_experts = model.config.text.num_experts
    loads = [torch.bincount(c.flatten(), minlength=num_experts) for c in chosen]
    return Batch(float(loss.detach()), list(gradients), torch.stack(loads).float())


def _weighted(found: Sequence[Tensor | None], share: Sequence[float]) -> Tensor | None:
    total = None
    for gradient, s in zip(found, share, strict=True):
        if gradient is not None:
            part = gradient * s
            total = part if total is None else total.add_(part)
    return total
