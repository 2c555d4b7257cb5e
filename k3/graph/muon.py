"""Per-Head Muon as a graph: split by heads, orthogonalize each block, merge."""

from k3.graph import primitives as p
from k3.graph.dims import Dim, times
from k3.graph.term import Number, Term, let, spread
from k3.spec import muon


def split(M: Term, heads: Dim, rows: Dim) -> Term:
    """A stored matrix [H*R, C] as one matrix a head, [H, R, C]."""
    return let("blocks", p.reshape(M, heads, rows, M.shape[1]))


def merge(blocks: Term) -> Term:
    """The inverse of split, [H, R, C] to [H*R, C]."""
    heads, rows, columns = blocks.shape
    return p.reshape(blocks, times(heads, rows), columns)


def newton_schulz(
    X: Term,
    steps: int = muon.STEPS,
    coefficients: tuple[Number, Number, Number] = muon.COEFFICIENTS,
) -> Term:
    """X <- aX + (bA + cA^2) X with A = X X^T, from X / |X|_F, per block [H, R, C]."""
    a, b, c = coefficients
    size = p.sqrt(p.total(X * X, 1, 2))
    X = X / spread(size, X.shape, 0)
    for _ in range(steps):
        A = p.contract("hrc,hsc->hrs", X, X)
        X = a * X + p.matmul(b * A + c * p.matmul(A, A), X)
    return let("orthogonal", X)


def per_head(M: Term, heads: Dim, rows: Dim) -> Term:
    """The orthogonalizer on each head of a stored matrix [H*R, C]."""
    return merge(newton_schulz(split(M, heads, rows)))
