"""What a rank says about its groups."""

import torch

from k3.errors import K3Error
from k3.parallel import failure


def sums(ranks):
    """Each axis: its size, this rank's number, and the sum of global numbers."""
    said = {}
    for name in ("pipeline", "expert", "data", "context", "trunk", "replica", "world"):
        axis = ranks.axis(name)
        total = axis.sum_(torch.tensor([ranks.rank]))
        said[name] = axis.size, axis.rank, int(total)
    return said, ranks.leads, ranks.reader


def fail(ranks):
    """The second rank fails, then the first: what each of them lets out."""
    world, one = ranks.axis("world"), torch.ones(1)
    try:
        with failure.told_once():
            if ranks.leads:
                world.sum_(one)
            raise K3Error(f"rank {ranks.rank} is wrong")
    except (K3Error, SystemExit) as fault:
        if not ranks.leads:
            world.sum_(one)
        return type(fault).__name__, str(fault)
