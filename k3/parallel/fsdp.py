"""Weights in shards: FSDP2 over the ranks that share a stage.

A unit is what takes tensors and returns one: a mixer, a feed-forward, a vision block,
an embedding, a head. A whole layer is none: it works on a Depth. What is left, norms
and depth queries, belongs to the root and stays gathered during a step.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.distributed.fsdp._fully_shard._fsdp_common import (
    FSDPMeshInfo,
    ShardPlacementResult,
)
from torch.distributed.tensor import DTensor, Shard

from k3.errors import RequestError
from k3.model.experts import Experts
from k3.model.kda import KDA
from k3.model.mla import MLA
from k3.model.mlp import MLP
from k3.model.moe import MoE
from k3.model.mtp import SharedHead
from k3.model.vision import Block
from k3.parallel.pipeline import Stage
from k3.parallel.ranks import Axis, Ranks

UNITS = (KDA, MLA, MoE, MLP, SharedHead, Block, nn.Embedding)


def shard(
    stage: Stage, ranks: Ranks, *, zero: int = 3, compute: torch.dtype | None = None
) -> Stage:
    """Split the parameters of a stage over the ranks of its trunk; returns it.

    `zero` 3 gathers weights before each pass of a unit and gives them up after it, 2
    keeps them from the first forward to the last backward pass of a step. Gradients
    are sums over the ranks, in fp32, of which each keeps its part. `compute` is what
    weights are cast to where they are gathered; islands of fp32 (`fp32` of a module)
    are neither cast nor split, and their gradients are added up by `gradients`.
    Experts that are split over the expert axis are gathered over the others.
    """
    if zero not in (2, 3):
        raise RequestError(f"zero must be 2 or 3: got {zero}")
    trunk = ranks.axis("trunk")
    if trunk.mesh is None:
        return stage
    policy = MixedPrecisionPolicy(
        param_dtype=compute, reduce_dtype=torch.float32, cast_forward_inputs=False
    )
    options: dict[str, Any] = {
        "mp_policy": policy,
        "reshard_after_forward": zero == 3,
        "ignored_params": set(islands(stage)),
    }
    experts = _experts(stage, ranks)
    for unit in _units(stage):
        fully_shard(unit, mesh=trunk.mesh, shard_placement_fn=experts, **options)
    fully_shard(stage, mesh=trunk.mesh, **options)
    for module in _sharded(stage):
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)
        module.set_reshard_after_backward(zero == 3)
    return stage


def release(stage: Stage) -> None:
    """Give up weights that a step has kept: they are about to change."""
    for module in _sharded(stage):
        module.reshard()


def islands(module: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that stay in fp32 and whole, in the order of modules."""
    return [
        getattr(owner, name)
        for owner in module.modules()
        for name in getattr(owner, "fp32", ())
    ]


def local(x: Tensor) -> Tensor:
    """Return this rank's part of a tensor in shards, sharing memory; others as is."""
    return x.to_local() if isinstance(x, DTensor) else x


def gradients(
    stage: Stage, parameters: list[nn.Parameter], ranks: Ranks
) -> list[Tensor | None]:
    """Take the step's gradients of this rank's parts, added up over the ranks."""
    whole = [p.grad for p in islands(stage) if p.grad is not None]
    if whole and ranks.axis("trunk").size > 1:
        flat = torch.cat([g.flatten() for g in whole])
        ranks.axis("trunk").sum_(flat)
        for gradient, part in zip(
            whole, flat.split([g.numel() for g in whole]), strict=True
        ):
            gradient.copy_(part.view_as(gradient))
    found = [None if p.grad is None else local(p.grad) for p in parameters]
    for p in parameters:
        p.grad = None
    _tie(stage, parameters, found, ranks.axis("pipeline"))
    return found


def _tie(
    stage: Stage,
    parameters: list[nn.Parameter],
    found: list[Tensor | None],
    line: Axis,
) -> None:
    """Add up the gradients of a parameter that the first and last stage both hold."""
    if not stage.tied:
        return
    tied = stage.model.get_parameter(stage.tied)
    at = next(i for i, p in enumerate(parameters) if p is tied)
    # The last stage has none where MTP did not run.
    here = torch.zeros_like(local(tied)) if found[at] is None else found[at]
    assert here is not None
    other, peer = torch.empty_like(here), line.peer(line.size - 1 - line.rank)
    sending = dist.isend(here, peer)
    dist.recv(other, peer)
    if sending is not None:
        sending.wait()
    # In one order on both, so that their weights stay equal.
    found[at] = here + other if line.rank == 0 else other + here


def norm(
    parameters: list[nn.Parameter],
    found: list[Tensor | None],
    ranks: Ranks,
    copies: frozenset[nn.Parameter] = frozenset(),
) -> Tensor:
    """Return the norm of all gradients of all ranks, each number counted once.

    `copies` are parameters that another stage counts.
    """
    first = ranks.axis("trunk").rank == 0
    squares = [
        g.double().square().sum()
        for p, g in zip(parameters, found, strict=True)
        if g is not None and p not in copies and (first or isinstance(p, DTensor))
    ]
    total = (
        torch.stack(squares).sum() if squares else torch.zeros((), dtype=torch.float64)
    )
    return ranks.axis("world").sum_(total).sqrt()


def _units(stage: Stage) -> list[nn.Module]:
    """Return the units; what lies inside another one belongs to it."""
    found: list[nn.Module] = []
    inside: set[nn.Module] = set()
    shared = _shared(stage)
    for module in stage.modules():
        if any(p in shared for p in module.parameters()):
            continue
        if module not in inside and (
            isinstance(module, UNITS) or _is_head(stage, module)
        ):
            found.append(module)
            inside.update(module.modules())
    return found


def _shared(stage: Stage) -> set[nn.Parameter]:
    """Return parameters of several modules; the root has them, being one unit."""
    owned = Counter(p for m in stage.modules() for p in m.parameters(recurse=False))
    return {p for p, count in owned.items() if count > 1}


def _is_head(stage: Stage, module: nn.Module) -> bool:
    head = stage.model.language_model.lm_head
    return module is head and isinstance(head, nn.Linear)


def _sharded(stage: Stage) -> Iterator[FSDPModule]:
    return (module for module in stage.modules() if isinstance(module, FSDPModule))


def _experts(stage: Stage, ranks: Ranks) -> Callable[[nn.Parameter], Any]:
    """Return where a parameter is split: a rank's own experts among their copies."""
    if ranks.mesh.expert == 1 or ranks.grid is None:
        return lambda p: None
    owners = [m for m in stage.modules() if isinstance(m, Experts)]
    own = {p for m in owners for p in m.parameters()}
    info = FSDPMeshInfo(ranks.grid["replica"], shard_mesh_dim=0)
    place = ShardPlacementResult(Shard(0), info)
    return lambda p: place if p in own else None
