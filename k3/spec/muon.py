"""Per-Head Muon: momentum split by heads, each block orthogonalized.

The paper gives no constants; those here are the public ones of earlier Muon reports.
"""

from collections.abc import Callable
from fractions import Fraction

from k3.spec import ops
from k3.spec.ops import Array, Number

STEPS = 5
COEFFICIENTS = (Fraction("3.4445"), Fraction("-4.7750"), Fraction("2.0315"))
MOMENTUM = Fraction("0.95")
SCALE = Fraction("0.2")


def split(M: Array, heads: int) -> Array:
    """Per-Head Muon: a stored matrix [H*R C] as one matrix a head, [H R C]."""
    return ops.reshape(M, heads, -1, M.shape[1])


def merge(blocks: Array) -> Array:
    """Per-Head Muon: the inverse of split, [H R C] to [H*R C]."""
    return ops.reshape(blocks, -1, blocks.shape[2])


def split_columns(M: Array, heads: int) -> list[Array]:
    """The article's layout: M [R H*C] to H times [R C]; block h starts at column hC."""
    width = M.shape[1] // heads
    return [M[:, h * width : (h + 1) * width] for h in range(heads)]


def merge_columns(blocks: list[Array]) -> Array:
    """The inverse of split_columns."""
    return ops.concat(blocks, axis=1)


def per_head(apply: Callable[[Array], Array], M: Array, heads: int) -> Array:
    """Per-Head Muon: an orthogonalizer on each head of a stored matrix [H*R C]."""
    return merge(ops.stack([apply(block) for block in split(M, heads)]))


def gram(Q: Array) -> Array:
    """Q^T Q, the identity for orthonormal columns. [R C] to [C C]."""
    return ops.transpose(Q) @ Q


def newton_schulz(
    X: Array,
    steps: int = STEPS,
    coefficients: tuple[Number, Number, Number] = COEFFICIENTS,
) -> Array:
    """The orthogonalizer: X <- aX + (bA + cA^2) X with A = X X^T, from X / |X|_F.

    X [R C] not zero; the shorter side is used for A. Returns [R C].
    """
    if X.shape[0] > X.shape[1]:
        flipped = newton_schulz(ops.transpose(X), steps, coefficients)
        return ops.transpose(flipped)
    a, b, c = (ops.lift(X, value) for value in coefficients)
    X = X / ops.sqrt(ops.total(ops.total(X * X)))
    for _ in range(steps):
        A = X @ ops.transpose(X)
        X = a * X + (b * A + c * (A @ A)) @ X
    return X


def momentum(M: Array, G: Array, mu: Number = MOMENTUM) -> tuple[Array, Array]:
    """Nesterov momentum: M' = mu M + G, and the update G + mu M'. Returns both."""
    rate = ops.lift(G, mu)
    after = rate * M + G
    return after, G + rate * after


def update_scale(rows: int, columns: int, like: Array, scale: Number = SCALE) -> Array:
    """0.2 sqrt(max(rows, columns)): matches the update's size to AdamW's. Scalar."""
    return ops.lift(like, scale) * ops.sqrt(ops.lift(like, max(rows, columns)))


def step(W: Array, update: Array, *, rate: Number, decay: Number) -> Array:
    """W' = W - rate (scale * update + decay W), update orthogonalized. [R C]."""
    size = update_scale(len(W), W.shape[1], W)
    return W - ops.lift(W, rate) * (size * update + ops.lift(W, decay) * W)


def clip_factor(largest_logit: Array, limit: Number = 100) -> Array:
    """QK-Clip: min(1, limit / S), shared out as its root to queries and keys."""
    one = ops.lift(largest_logit, 1)
    return ops.minimum(one, ops.lift(largest_logit, limit) / largest_logit)
