"""Context-parallel KDA as a graph: Eq. 17, segments as affine maps of the memory.

A summary (M [K, K], B [K, V]) stands for S -> M S + B.
"""

from dataclasses import dataclass

from k3.graph import primitives as p
from k3.graph.compare import same
from k3.graph.term import Term, let, spread


@dataclass(frozen=True, slots=True)
class Summary:
    """The affine map S -> M S + B of a segment of tokens."""

    M: Term
    B: Term


def act(summary: Summary, S: Term) -> Term:
    """Eq. 17: the memory after a segment, M S + B. [K, V]."""
    return p.matmul(summary.M, S) + summary.B


def token(k: Term, v: Term, alpha: Term, beta: Term) -> Summary:
    """Eq. 1 as a summary: ((I - beta k k^T) Diag(alpha), beta k v^T)."""
    shape = (*k.shape, *k.shape)
    places = p.positions(k.shape[0])
    eye = same(spread(places, shape, 0), spread(places, shape, 1))
    erase = eye - spread(beta, shape) * p.outer(k, k)
    write = p.outer(k, v)
    return Summary(
        let("M", erase * spread(alpha, shape, 1)),
        let("B", spread(beta, write.shape) * write),
    )


def compose(earlier: Summary, later: Summary) -> Summary:
    """Eq. 17: first `earlier`, then `later`: (M2 M1, M2 B1 + B2)."""
    return Summary(p.matmul(later.M, earlier.M), act(later, earlier.B))
