"""Snapshots written and read by ranks."""

from pathlib import Path

import torch
from torch.distributed.tensor import DTensor, Shard

from k3.parallel import dcp


def tensors(ranks):
    """Rows that do not divide evenly, a scalar, and a name of each stage's own."""
    whole = torch.arange(35, dtype=torch.float32).view(7, 5)
    trunk = ranks.axis("trunk")
    x = whole
    if trunk.mesh is not None:
        rows = torch.chunk(whole, trunk.size)
        part = rows[trunk.rank] if trunk.rank < len(rows) else whole[:0]
        x = DTensor.from_local(
            part.clone(),
            trunk.mesh,
            [Shard(0)],
            run_check=False,
            shape=whole.shape,
            stride=whole.stride(),
        )
    own = f"stage.{ranks.axis('pipeline').rank}"
    return {"x": x, "scalar": torch.tensor(3.0), own: torch.full((2,), 5.0)}


def save(ranks, folder):
    dcp.save(tensors(ranks), Path(folder), {"step": 7}, ranks.rank)


def load(ranks, path):
    """What each rank reads, after zeros."""
    like = {n: torch.zeros_like(x) for n, x in tensors(ranks).items()}
    like["absent"] = torch.zeros(3)
    return dcp.load(Path(path), like)
