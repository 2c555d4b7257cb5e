"""SiTU, the gated unit with both factors capped: Eq. 12, 18 and 19."""

from collections.abc import Mapping

from k3.spec import ops
from k3.spec.ops import Array, Number

BETA = 4
LINEAR_BETA = 25


def soft_cap(z: Array, cap: Number) -> Array:
    """Eq. 18: cap tanh(z / cap), in (-cap, cap), z + O(z^3 / cap^2) near 0."""
    c = ops.lift(z, cap)
    return c * ops.tanh(z / c)


def situ(
    gate: Array, up: Array, beta: Number = BETA, linear: Number = LINEAR_BETA
) -> Array:
    """Eq. 12: soft_cap(gate, beta) sigmoid(gate) soft_cap(up, linear).

    The sigmoid takes the raw gate, not the capped one. gate, up [F] to [F].
    """
    return soft_cap(gate, beta) * ops.sigmoid(gate) * soft_cap(up, linear)


def bound(beta: Number = BETA, linear: Number = LINEAR_BETA) -> Number:
    """Eq. 19: no entry of SiTU exceeds beta linear in magnitude: 100."""
    return beta * linear


def cap_error(z: Array, cap: Number) -> Array:
    """Eq. 18, its remainder: |soft_cap(z) - z| <= |z|^3 / (3 cap^2)."""
    c = ops.lift(z, cap)
    return abs(z) * z * z / (3 * c * c)


def expert(
    gate: Array,
    up: Array,
    down: Array,
    x: Array,
    *,
    beta: Number = BETA,
    linear: Number = LINEAR_BETA,
) -> Array:
    """Eq. 12: W_down SiTU(W_gate x, W_up x). gate, up [F D], down [D F], x [D]."""
    return down @ situ(gate @ x, up @ x, beta, linear)


def mlp(
    weights: Mapping[str, Array],
    x: Array,
    beta: Number = BETA,
    linear: Number = LINEAR_BETA,
) -> Array:
    """Eq. 12 with a checkpoint's names: the dense MLP and the shared experts. [D]."""
    gate, up, down = (weights[f"{n}_proj.weight"] for n in ("gate", "up", "down"))
    return expert(gate, up, down, x, beta=beta, linear=linear)
