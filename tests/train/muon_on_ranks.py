"""Two Muon steps over rows of parameters, on whatever ranks there are."""

import torch

from k3.parallel.wire import Wire
from k3.train import muon, muon_sharded
from k3.train.matrices import Cut

CUTS = {
    "heads": Cut((5,), 7),
    "parts": Cut((4, 3), 3),
    "whole": Cut((19,)),
    "small": Cut((3,)),
    "experts": Cut((6,)),
    "idle": Cut((9,)),
}
SHAPES = {
    "heads": (35, 8),
    "parts": (21, 5),
    "whole": (19, 12),
    "small": (3, 10),
    "experts": (5, 6, 4),
    "idle": (9, 9),
}


def values(seed):
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(s, generator=generator) for n, s in SHAPES.items()}


def gradients(step):
    found = values(10 + step)
    found["idle"].zero_()
    found["experts"][step] = 0
    return found


def alone(dtype=torch.float32):
    weights = values(0)
    optimizer = muon.Muon(weights, CUTS, decay=0.1, dtype=dtype)
    for step in range(2):
        optimizer.step(gradients(step), 0.1)
    return weights, optimizer.moments, optimizer.orthogonalized


def sharded(ranks, *, dtype=torch.float32, bucket=muon_sharded.BUCKET_VALUES):
    """(rows, their momentum, matrices, bytes sent, owned) of this rank."""
    muon_sharded.BUCKET_VALUES = bucket
    wire = Wire(ranks.axis("trunk"))
    held = {
        n: muon_sharded.spans(s[0], wire.size)[wire.rank] for n, s in SHAPES.items()
    }
    weights = {n: w[slice(*held[n])].clone() for n, w in values(0).items()}
    optimizer = muon_sharded.ShardedMuon(
        weights, CUTS, SHAPES, wire, decay=0.1, dtype=dtype
    )
    for step in range(2):
        found = {n: g[slice(*held[n])] for n, g in gradients(step).items()}
        optimizer.step(found, 0.1)
    sent = wire.sent_bytes["muon"]
    return weights, optimizer.moments, optimizer.orthogonalized, sent
