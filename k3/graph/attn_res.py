"""Attention residuals as a graph on the packed depth of one token: Eq. 8-10.

rows [N, D] hold the embedding and the completed block sums; partial [D] the running
sum, absent (None) at the start of a block. When a block is completed is static.
"""

from dataclasses import dataclass

from k3.graph import primitives as p
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.term import Term, let


@dataclass(frozen=True, slots=True)
class Depth:
    """One token's packed depth: rows, running sum, and layers in the running block."""

    rows: Term
    partial: Term | None
    size: int = 0


def start(embedding: Term) -> Depth:
    """Before the first layer only the embedding is a source."""
    return Depth(p.reshape(embedding, 1, *embedding.shape), None)


def sources(depth: Depth) -> Term:
    """What a sublayer mixes: the rows, then the running sum if there is one."""
    if depth.partial is None:
        return depth.rows
    return let("sources", p.append(depth.rows, depth.partial))


def query(weights: Inputs, name: str) -> Term:
    """The query of a sublayer: key-norm weight times projection. [D]."""
    proj = weights.real(f"{name}_proj.weight", "1, D")
    return weights.real(f"{name}_norm.weight", "D") * p.pick(proj, 0)


def retrieve(q: Term, values: Term, numbers: Numbers = RELEASED) -> Term:
    """Eq. 8-9: h = sum_j p_j v_j, p = softmax of q^T RMSNorm(v_j), v raw. [D]."""
    keys = let("keys", p.unit_rms(values, numbers.eps))
    scores = let("scores", p.contract("nd,d->n", keys, q))
    return let("h", p.contract("n,nd->d", let("p", p.softmax(scores)), values))


def mix(weights: Inputs, name: str, depth: Depth, numbers: Numbers = RELEASED) -> Term:
    """Eq. 8-10 for one sublayer of the checkpoint. [D]."""
    return retrieve(query(weights, name), sources(depth), numbers)


def add(depth: Depth, y: Term) -> Depth:
    """The running sum takes a sublayer's output [D]."""
    partial = y if depth.partial is None else let("partial", depth.partial + y)
    return Depth(depth.rows, partial, depth.size)


def finish_layer(depth: Depth, block: int) -> Depth:
    """After both sublayers; the sum of `block` layers becomes a row."""
    if depth.size + 1 < block:
        return Depth(depth.rows, depth.partial, depth.size + 1)
    assert depth.partial is not None
    return Depth(let("rows", p.append(depth.rows, depth.partial)), None)
