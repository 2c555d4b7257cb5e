"""What many ranks keep of a run: snapshots written and read together."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard

from k3.parallel import dcp
from k3.train import progress, snapshot
from k3.train.masters_sharded import ShardedMasters
from k3.train.progress import Progress
from k3.train.team import Team
from k3.train.writer import Writer

MOMENTS = ("weight", "exp_avg", "exp_avg_sq", "momentum")


class SharedWriter(Writer):
    """A Writer whose snapshots all ranks write at once, each its parts."""

    def __init__(self, directory: Path, keep: int, team: Team) -> None:
        super().__init__(directory, keep)
        self.team = team

    def begin(self, tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> None:
        """Write the snapshot of a step; returns when it is on the disk.

        Raises: CheckpointError.
        """
        step, ranks = int(facts["step"]), self.team.ranks
        folder = snapshot.folder_of(self.directory, step)
        if not folder.exists():
            parts = spread(_masters(self.team), tensors)
            dcp.save(parts, folder, facts, ranks.rank)
        if ranks.leads:
            snapshot.drop(self.directory, step, self.keep)


def restore(team: Team, directory: Path, seed: int) -> Progress:
    """Take back the newest snapshot, whoever wrote it; at step 0 begin by `seed`.

    Raises: CheckpointError where it is damaged or of another model.
    """
    path = newest(directory)
    known = dcp.facts(path)
    try:
        at = Progress.of(known)
        if not at.step:
            torch.manual_seed(seed)
            random.seed(seed)
            return at
        held = load(team, path)
        team.masters.restore(held)
        team.balance.restore(held)
        torch.set_rng_state(held[progress.RANDOM])
        version, numbers, gauss = known["random"]
        random.setstate((version, tuple(numbers), gauss))
    except (KeyError, RuntimeError, TypeError, ValueError) as fault:
        raise snapshot.damaged(path, repr(fault)) from fault
    return at


def newest(directory: Path) -> Path:
    """Return the newest snapshot of a run. Raises: CheckpointError for none."""
    paths = snapshot.kept(directory)
    if not paths:
        raise snapshot.damaged(directory / snapshot.PATTERN, "there is none")
    return paths[0]


def load(team: Team, path: Path) -> dict[str, Tensor]:
    """Read this rank's parts of weights, moments, biases, and random numbers."""
    masters = _masters(team)
    state: dict[str, Tensor] = {}
    for name, weight in masters.weights.items():
        state |= {f"{kind}.{name}": weight.detach() for kind in MOMENTS}
        state[f"step.{name}"] = torch.zeros(())
    like = spread(masters, state) | team.balance.state()
    found = dcp.load(path, like | {progress.RANDOM: torch.get_rng_state()})
    back = {
        f"{kind}.{stored}": f"{kind}.{name}"
        for name, stored in masters.stored.items()
        for kind in (*MOMENTS, "step")
    }
    return {back.get(key, key): x for key, x in found.items()}


def spread(masters: ShardedMasters, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Say of parts of weights and moments where in the whole they lie."""
    found = {}
    for key, x in tensors.items():
        kind, _, name = key.partition(".")
        if name in masters.stored:
            key = f"{kind}.{masters.stored[name]}"
            x = _spread(masters, name, x) if kind in MOMENTS else x
        found[key] = x
    return found


def _spread(masters: ShardedMasters, name: str, x: Tensor) -> Tensor:
    p, ranks = masters.parameters[name], masters.ranks
    if not isinstance(p, DTensor):
        return x
    mesh, count = p.device_mesh, len(p)
    if masters.axis(name) is not ranks.axis("trunk") and ranks.grid is not None:
        mesh, count = ranks.grid["expert", "replica"], count * ranks.mesh.expert
    shape = torch.Size((count, *p.shape[1:]))
    return DTensor.from_local(
        x,
        mesh,
        [Shard(0)] * mesh.ndim,
        run_check=False,
        shape=shape,
        stride=torch.empty(shape, device="meta").stride(),
    )


def _masters(team: Team) -> ShardedMasters:
    assert isinstance(team.masters, ShardedMasters)
    return team.masters
