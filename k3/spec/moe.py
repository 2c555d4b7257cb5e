"""Stable LatentMoE, Eq. 11 and 13: routing and the sparse layer of one token."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from k3.spec import norm, ops, situ
from k3.spec.ops import Array, Number
from k3.spec.weights import under

# The release adds this to the sum it divides by; the paper does not.
TINY = Fraction(1, 10**20)


def router(weight: Array, x: Array) -> Array:
    """Eq. 13 (§2.3.3): scores s = sigmoid(W x), in (0, 1). [E D], [D] to [E]."""
    return ops.sigmoid(weight @ x)


def top_k(scores: Array, k: int) -> list[int]:
    """Eq. 13: the k largest, largest first, equal ones by lower index. 1 <= k <= E.

    The release leaves ties open; every choice of k largest is a top-k.
    """
    return ops.order(scores)[:k]


def is_top_k(scores: Array, chosen: Sequence[int]) -> bool:
    """Whether every chosen score is at least every other one, without repetition."""
    inside = set(chosen)
    worst = min(ops.key(scores[e]) for e in inside)
    rest = [ops.key(scores[e]) for e in range(len(scores)) if e not in inside]
    return len(inside) == len(chosen) and all(worst >= other for other in rest)


def route(
    scores: Array,
    bias: Array,
    k: int,
    *,
    scaling: Number = 1,
    tiny: Number = TINY,
) -> tuple[list[int], Array]:
    """Eq. 13: T = argtopk(s + b) and p = s_T / sum of s_T: the bias only chooses.

    scores, bias [E]. tiny 0 is the paper's reading. Returns T and p [k]. The release's
    limit to groups of experts is inert: it has one group.
    """
    chosen = top_k(scores + bias, k)
    raw = ops.stack([scores[e] for e in chosen])
    weights = raw / (ops.total(raw) + ops.lift(scores, tiny))
    return chosen, weights * ops.lift(scores, scaling)


def mixture(weights: Array, outputs: Sequence[Array]) -> Array:
    """Eq. 11: u = sum_i p_i E_i(z). [k] and k times [L] to [L]."""
    u = weights[0] * outputs[0]
    for p, out in zip(weights[1:], outputs[1:], strict=True):
        u = u + p * out
    return u


def routed_expert(
    weights: Mapping[str, Array],
    e: int,
    z: Array,
    beta: Number = situ.BETA,
    linear: Number = situ.LINEAR_BETA,
) -> Array:
    """Eq. 11: expert e on the latent z [L]; w1 gate, w3 up, w2 down. [L]."""
    gate, down, up = (weights[f"experts.{e}.w{i}.weight"] for i in (1, 2, 3))
    return situ.expert(gate, up, down, z, beta=beta, linear=linear)


def given_route(
    weights: Mapping[str, Array],
    x: Array,
    chosen: Sequence[int],
    p: Array,
    *,
    beta: Number = situ.BETA,
    linear: Number = situ.LINEAR_BETA,
    eps: Number = norm.EPS,
) -> Array:
    """Eq. 11: y = sum_j E^sh_j(x) + W_up RMSNorm(u) on a given route.

    u mixes experts of the latent W_down x. The shared experts are one wide expert in
    the checkpoint, the same function as their sum. Returns [D].
    """
    z = weights["routed_expert_down_proj.weight"] @ x
    outputs = [routed_expert(weights, e, z, beta, linear) for e in chosen]
    u = norm.rms_norm(mixture(p, outputs), weights["routed_expert_norm.weight"], eps)
    shared = situ.mlp(under(weights, "shared_experts."), x, beta, linear)
    return shared + weights["routed_expert_up_proj.weight"] @ u


def layer(
    weights: Mapping[str, Array],
    x: Array,
    k: int,
    *,
    scaling: Number = 1,
    tiny: Number = TINY,
    beta: Number = situ.BETA,
    linear: Number = situ.LINEAR_BETA,
    eps: Number = norm.EPS,
) -> Array:
    """Eq. 11 and 13: route a token [D] by its own scores, then mix. Returns [D]."""
    scores = router(weights["gate.weight"], x)
    bias = weights["gate.e_score_correction_bias"]
    chosen, p = route(scores, bias, k, scaling=scaling, tiny=tiny)
    return given_route(weights, x, chosen, p, beta=beta, linear=linear, eps=eps)
