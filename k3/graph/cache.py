"""What a context costs, and where a prefix may resume, as graphs (§2.1.2, §5.4.1)."""

from k3.graph import primitives as p
from k3.graph.compare import at_least, peak
from k3.graph.term import Term, let, spread


def row_scalars(latent: Term, shared: Term) -> Term:
    """Scalars of one token in one MLA layer: the latent and the shared key."""
    return latent + shared


def full_scalars(heads: Term, content: Term, shared: Term, value: Term) -> Term:
    """What the same token would need with keys and values of every head."""
    return heads * (content + shared + value)


def restored(matched: Term, block: Term, kept: Term) -> Term:
    """§5.4.1: the last end of a hash block that rows reach and a checkpoint has.

    kept [N] is 1 where every KDA group has a checkpoint at the end of block j. Scalar,
    0 if there is none.
    """
    ends = let("ends", (p.positions("N") + 1) * spread(block, kept.shape))
    within = let("within_rows", at_least(spread(matched, kept.shape), ends))
    return peak(ends * within * kept)
