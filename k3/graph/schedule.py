"""The layer schedule as a graph (§2.1): which layers are MLA, what each one mixes.

Layers 1..N are counted as the paper counts them.
"""

from k3.graph import primitives as p
from k3.graph.compare import below, larger, same
from k3.graph.term import Term, let, spread


def layers() -> Term:
    """1, 2, ..., N."""
    return let("layer", p.positions("N") + 1)


def mla(every: Term) -> Term:
    """1 for each `every`-th layer and for the last one, else 0. [N]."""
    layer = layers()
    grid = ("N", "N")
    multiples = layer * spread(every, layer.shape)
    hits = same(spread(layer, grid, 0), spread(multiples, grid, 1))
    last = same(layer, spread(p.size("N"), layer.shape))
    return let("mla", larger(p.total(hits, 1), last))


def sources(done: Term, block: Term) -> Term:
    """Eq. 10: depth sources once `done` [N] layers ran: 1 + ceil(done / block). [N]."""
    grid = ("N", "N")
    starts = p.positions("N") * spread(block, done.shape)
    begun = below(spread(starts, grid, 1), spread(done, grid, 0))
    return let("sources", 1 + p.total(begun, 1))
