"""Attention residuals over depth, Eq. 8-10, for one token.

Sources are the embedding, the sums of completed blocks and the running sum. Nothing
crosses tokens, so nothing of it is kept between decode steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from k3.spec import norm, ops
from k3.spec.ops import Array, Number


@dataclass(frozen=True, slots=True)
class BlockState:
    """One token's depth: embedding [D], completed block sums, running sum and size."""

    embedding: Array
    completed: tuple[Array, ...]
    partial: Array | None
    size: int


def query(weights: Mapping[str, Array], name: str) -> Array:
    """Eq. 9: the query of a sublayer, key-norm weight times projection. [D].

    The paper's key norm has no weight; the release's folds into the query. Names are
    self_attention_res, mlp_res and output_attn_res.
    """
    return weights[f"{name}_norm.weight"] * weights[f"{name}_proj.weight"][0]


def scores(q: Array, values: Array, eps: Number = norm.EPS) -> Array:
    """Eq. 9: q^T RMSNorm(v_j) of each source, no 1/sqrt(D). [D], [n D] to [n]."""
    return norm.unit_rms(values, eps) @ q


def retrieve(q: Array, values: Array, eps: Number = norm.EPS) -> Array:
    """Eq. 8-9: h = sum_j p_j v_j, p = softmax of the scores, v raw.

    q [D], values [n D] with n >= 1. Returns [D].
    """
    return ops.softmax(scores(q, values, eps)) @ values


def start(embedding: Array) -> BlockState:
    """Eq. 10: before the first layer only the embedding is a source."""
    return BlockState(embedding, (), None, 0)


def sources(state: BlockState) -> Array:
    """Eq. 10: [n D] what the first sublayer of a layer mixes.

    At the start of a block the running sum is absent: b_0 .. b_{n-1} only.
    """
    partial = [] if state.partial is None else [state.partial]
    return ops.stack([state.embedding, *state.completed, *partial])


def add(state: BlockState, y: Array) -> BlockState:
    """Eq. 10: the running sum takes a sublayer's output y [D]."""
    partial = y if state.partial is None else state.partial + y
    return BlockState(state.embedding, state.completed, partial, state.size)


def finish_layer(state: BlockState, block: int) -> BlockState:
    """Eq. 10: after both sublayers; the sum of `block` layers becomes a source.

    The article commits after a block's last layer, the release before the next
    layer's first sublayer: the sources that any sublayer sees are the same.
    """
    if state.size + 1 < block:
        return BlockState(
            state.embedding, state.completed, state.partial, state.size + 1
        )
    return BlockState(state.embedding, (*state.completed, state.partial), None, 0)


def outputs(state: BlockState) -> list[Array]:
    """The block sums after the embedding, the running one included."""
    partial = [] if state.partial is None else [state.partial]
    return [*state.completed, *partial]


def source_count(layers: int, block: int) -> int:
    """Sources after all layers: the embedding and ceil(layers / block) sums: 9."""
    return 1 + -(-layers // block)


def phase(q: Array, values: Array, eps: Number = norm.EPS) -> tuple[Array, Array]:
    """One phase of a mix: Z = sum e^s and N = sum e^s v over its sources.

    The inter-block phase is computed once a block for all its queries.
    """
    e = ops.exp(scores(q, values, eps))
    return ops.total(e), e @ values


def merge(phases: Sequence[tuple[Array, Array]]) -> Array:
    """The mix over the union of the phases' sources: sum N / sum Z. [D]."""
    Z, N = phases[0]
    for z, n in phases[1:]:
        Z, N = Z + z, N + n
    return N / Z


def online(
    m: Array, Z: Array, N: Array, score: Array, value: Array
) -> tuple[Array, Array, Array]:
    """Online softmax: one more source into (m, Z, N), with e^m pulled out.

    The state stands for Z e^m and N e^m; m is the largest score so far. [], [], [D].
    """
    top = ops.maximum(m, score)
    old, new = ops.exp(m - top), ops.exp(score - top)
    return top, Z * old + new, N * old + new * value
