"""Expert parallelism: each rank holds E/R experts, tokens travel to them and back.

Plain: an assignment goes to the rank that holds its expert, and a rank may receive up
to S*K*R of them. Balanced (MoonEP, Eq. 28): every rank receives exactly S*K, and for
that fetches the weights of at most E/R experts from their owner; the gradients of
these copies are added to the owner's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from k3.kernels import mx
from k3.model import Model, stored
from k3.model.experts import Experts
from k3.model.moe import MoE
from k3.parallel import moonep
from k3.parallel.moonep import Slots
from k3.parallel.ranks import Axis
from k3.parallel.wire import Parcel, Wire

Run = Callable[[int, Tensor], Tensor]
Copy = Callable[[Tensor], Tensor]
WEIGHTS = ("w1", "w2", "w3")


def split(model: Model, axis: Axis, *, balanced: bool = True) -> Model:
    """Keep this rank's E/R experts of every layer and exchange tokens; returns model.

    Gradients are those of the sum of all ranks' losses. Balanced, every rank must
    bring equally many tokens to a pass. Raises: ConfigError, ShapeError.
    """
    if axis.size == 1:
        return model
    stored.refuse(model, "a split over ranks")
    for module in model.modules():
        if isinstance(module, MoE):
            home = moonep.homes(module.experts.num_experts, axis.size)
            keep_(module.experts, np.flatnonzero(home == axis.rank))
            module.dispatch = Dispatch(module.experts, len(home), Wire(axis), balanced)
    return model


def keep_(experts: Experts, numbers: Slots) -> None:
    """Hold only these consecutive experts; in the state dict they keep their names."""
    first, count = int(numbers[0]), len(numbers)
    here = slice(first, first + count)
    for part in experts.stored():
        name = part.replace(".weight", "")
        held = getattr(experts, name)[here]
        if isinstance(held, Tensor):
            held = held.detach().clone()
        if isinstance(getattr(experts, name), nn.Parameter):
            held = nn.Parameter(held)
        setattr(experts, name, held)
    experts.first, experts.num_experts = first, count


@dataclass(eq=False, slots=True)
class Dispatch:
    """kernels.moe.combine over experts of several ranks, for MoE.dispatch.

    Counts what crossed the wire, and the most rows and copies of experts that a pass
    had to hold: `peak_rows`, `peak_copies`.
    """

    experts: Experts
    num_experts: int
    wire: Wire
    balanced: bool = True
    peak_rows: int = field(default=0, init=False)
    peak_copies: int = field(default=0, init=False)

    def __call__(
        self, x: Tensor, index: Tensor, weights: Tensor, expert: Run
    ) -> Tensor:
        """Sum weight * expert(x) over the chosen experts, wherever they run."""
        flat, order = torch.sort(index.flatten(), stable=True)
        own = torch.bincount(flat, minlength=self.num_experts)
        counts = self.wire.gather("counts", own.int()).cpu().numpy().astype(np.int64)
        planned = self._plan(counts)
        rank = self.wire.rank
        sent = moonep.sends(counts, planned, rank)
        came = moonep.receives(counts, planned, rank)
        # By rank, then expert, then token: slots of an expert are dealt in order.
        to = np.repeat(np.tile(np.arange(len(sent)), sent.shape[1]), sent.T.ravel())
        order = order[torch.from_numpy(np.argsort(to, kind="stable")).to(order.device)]
        token = order // index.shape[1]
        rows = Parcel("rows", *(tuple(x.sum(1).tolist()) for x in (sent, came)))
        got, copies = self._send(x.index_select(0, token), rows, planned)
        y = self._run(got, came, copies, expert)
        (done,) = self.wire.exchange([rows.back], y)
        out = torch.zeros_like(x, dtype=weights.dtype)
        scale = weights.flatten()[order, None]
        return out.index_add(0, token, done * scale)

    def _plan(self, counts: Slots) -> Slots:
        load, ranks = counts.sum(0), len(counts)
        if self.balanced:
            return moonep.plan(load, ranks)
        home = moonep.homes(len(load), ranks)
        return np.where(home == np.arange(ranks)[:, None], load, 0)

    def _send(
        self, rows: Tensor, parcel: Parcel, planned: Slots
    ) -> tuple[Tensor, dict[int, Copy]]:
        """Exchange rows and, where a plan moves experts, their weights."""
        wanted = [moonep.fetched(planned, r) for r in range(self.wire.size)]
        self.peak_rows = max(self.peak_rows, sum(parcel.came))
        self.peak_copies = max(self.peak_copies, len(wanted[self.wire.rank]))
        if not any(map(len, wanted)):
            return self.wire.exchange([parcel], rows)[0], {}
        home = moonep.homes(self.num_experts, self.wire.size)
        ours = [e[home[e] == self.wire.rank] for e in wanted]
        mine = wanted[self.wire.rank]
        came = np.bincount(home[mine], minlength=self.wire.size)
        weights = Parcel("weights", tuple(map(len, ours)), tuple(came.tolist()))
        at = torch.from_numpy(np.concatenate(ours) - self.experts.first).to(rows.device)
        if self.experts.packed:
            return self._send_packed(rows, parcel, weights, at, mine)
        stacks = [getattr(self.experts, w).index_select(0, at) for w in WEIGHTS]
        got, *held = self.wire.exchange([parcel, *[weights] * 3], rows, *stacks)
        each = zip(*(w.unbind(0) for w in held), strict=True)
        return got, {
            int(e): _runner(self.experts, w) for e, w in zip(mine, each, strict=True)
        }

    def _send_packed(
        self, rows: Tensor, parcel: Parcel, weights: Parcel, at: Tensor, mine: Slots
    ) -> tuple[Tensor, dict[int, Copy]]:
        """Exchange experts as the MXFP4 bytes they are; they have no gradient."""
        (got,) = self.wire.exchange([parcel], rows)
        parts = [f"{w}_{part}" for w in WEIGHTS for part in ("packed", "scale")]
        held = [
            self.wire.move(weights, _rows(getattr(self.experts, p), at)) for p in parts
        ]
        each = zip(*(x.unbind(0) for x in held), strict=True)
        pairs = zip(mine, each, strict=True)
        return got, {int(e): _runner(self.experts, bytes_) for e, bytes_ in pairs}

    def _run(
        self, rows: Tensor, came: Slots, copies: dict[int, Copy], expert: Run
    ) -> Tensor:
        """Run every expert once over its rows, which lie by rank and then expert."""
        number = np.repeat(np.tile(np.arange(came.shape[1]), len(came)), came.ravel())
        order = torch.from_numpy(np.argsort(number, kind="stable")).to(rows.device)
        used, counts = np.unique(number, return_counts=True)
        groups = rows.index_select(0, order).split(counts.tolist())
        first = self.experts.first
        parts = [
            copies[e](part) if e in copies else expert(e - first, part)
            for e, part in zip(used.tolist(), groups, strict=False)
        ]
        if not parts:
            # No rows, but its experts' gradients are zero, not missing.
            return expert(0, rows)
        return torch.cat(parts).index_select(0, torch.argsort(order))


def _runner(experts: Experts, w: tuple[Tensor, ...]) -> Copy:
    """Run rows through the expert of w1, w2, w3, or of their bytes and scales."""

    def run(x: Tensor) -> Tensor:
        w1, w2, w3 = w if len(w) == 3 else _decoded(w, experts.dtype)
        return experts.run(x, w1, w2, w3)

    return run


def _decoded(w: tuple[Tensor, ...], dtype: torch.dtype) -> list[Tensor]:
    # As Experts.weight does: fp16's exponents do not reach all of MXFP4's.
    wide = torch.float32 if dtype == torch.float16 else dtype
    return [mx.decode(w[i], w[i + 1], wide).to(dtype) for i in (0, 2, 4)]


def _rows(stack: Tensor | list[Tensor], at: Tensor) -> Tensor:
    """Return some experts of a stack, or of a list mapped from a file, copied."""
    if isinstance(stack, Tensor):
        return stack.index_select(0, at)
    return torch.stack([stack[e] for e in at.tolist()])
