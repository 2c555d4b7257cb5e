"""What a rank says about its groups."""

import torch


def sums(ranks):
    """Each axis: its size, this rank's number, and the sum of global numbers."""
    said = {}
    for name in ("pipeline", "expert", "data", "context", "trunk", "replica", "world"):
        axis = ranks.axis(name)
        total = axis.sum_(torch.tensor([ranks.rank]))
        said[name] = axis.size, axis.rank, int(total)
    return said, ranks.leads, ranks.reader


def fail_on(ranks, rank):
    if ranks.rank == rank:
        raise ValueError("this rank is wrong")
    ranks.axis("world").sum_(torch.ones(1))
