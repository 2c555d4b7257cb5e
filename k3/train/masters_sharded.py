"""Master weights of a stage in shards: each rank moves the parts that it holds."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from k3.model.experts import Experts
from k3.parallel import fsdp
from k3.parallel.pipeline import EMBEDDING, Stage
from k3.parallel.ranks import Axis, Ranks
from k3.parallel.wire import Wire
from k3.train.masters import Masters
from k3.train.matrices import Cut
from k3.train.muon import Muon
from k3.train.muon_sharded import ShardedMuon, spans


class ShardedMasters(Masters):
    """Masters over the local parts of a stage's parameters, equal to those of all.

    The norm is that of all ranks, and Muon straightens whole matrices wherever their
    rows lie.
    """

    def __init__(self, stage: Stage, ranks: Ranks, **options: Any) -> None:
        self.ranks = ranks
        self._experts = {
            f"{path}.{name}"
            for path, module in stage.model.named_modules()
            if isinstance(module, Experts)
            for name, _ in module.named_parameters()
        }
        self._tied = stage.tied
        super().__init__(stage.model, **options)

    @property
    def stored(self) -> dict[str, str]:
        """The name in a snapshot of each weight: a tied one has that of the first."""
        return {n: EMBEDDING if n == self._tied else n for n in self.weights}

    def axis(self, name: str) -> Axis:
        """Return the ranks over which a parameter is split."""
        own = name in self._experts and self.ranks.mesh.expert > 1
        return self.ranks.axis("replica" if own else "trunk")

    def _piece(self, parameter: nn.Parameter) -> Tensor:
        return fsdp.local(parameter)

    def _muon(self, cuts: dict[str, Cut], weight_decay: float) -> Muon:
        if self.ranks.axis("trunk").size == 1:
            return super()._muon(cuts, weight_decay)
        by_axis: dict[Axis, list[str]] = {}
        for name in cuts:
            by_axis.setdefault(self.axis(name), []).append(name)
        parts = [
            ShardedMuon(
                {n: self.weights[n] for n in names},
                {n: cuts[n] for n in names},
                {n: self.parameters[n].shape for n in names},
                Wire(axis),
                decay=weight_decay,
            )
            for axis, names in by_axis.items()
        ]
        return _Several(parts, weight_decay)

    def _norm(self) -> Tensor:
        gradients = [weight.grad for weight in self.weights.values()]
        named = list(self.parameters.values())
        first = self.ranks.axis("pipeline").rank == 0
        copies = [
            p for n, p in self.parameters.items() if n == self._tied and not first
        ]
        return fsdp.norm(named, gradients, self.ranks, frozenset(copies)).float()

    def _largest(self) -> dict[str, Tensor]:
        largest = super()._largest()
        group = self.ranks.axis("trunk").group
        if largest and group is not None:
            joined = torch.stack(list(largest.values()))
            dist.all_reduce(joined, dist.ReduceOp.MAX, group=group)
            largest = dict(zip(largest, joined, strict=True))
        return largest

    def _first_row(self, name: str) -> int:
        p = self.parameters[name]
        if not isinstance(p, DTensor):
            return 0
        axis = self.axis(name)
        return spans(len(p), axis.size)[axis.rank][0]


class _Several(Muon):
    """Muon over parameters that are split over different axes."""

    def __init__(self, parts: Sequence[Muon], decay: float) -> None:
        super().__init__({}, {}, decay=decay)
        self.parts = parts
        for part in parts:
            self.weights |= part.weights
            self.cuts |= part.cuts
            self.moments |= part.moments

    def step(
        self,
        gradients: Mapping[str, Tensor | None],
        rate: float,
        pool: Executor | None = None,
    ) -> None:
        for part in self.parts:
            part.step({n: gradients[n] for n in part.weights}, rate, pool)
        self.orthogonalized = sum(part.orthogonalized for part in self.parts)
