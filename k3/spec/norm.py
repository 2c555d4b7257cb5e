"""RMSNorm (Eq. 6, 8, 11) and the regularized L2 norm (Eq. 2)."""

from fractions import Fraction

from k3.spec import ops
from k3.spec.ops import Array, Number

EPS = Fraction(1, 100_000)
L2_EPS = Fraction(1, 1_000_000)


def rms_norm(x: Array, weight: Array, eps: Number = EPS) -> Array:
    """RMSNorm over the last axis: w x / sqrt(mean(x^2) + eps).

    x [... D], weight [D]. eps is 1e-5 in K3 except for MLA's two latent norms (1e-6 in
    the release) and the vision tower. Source: release notes §3.
    """
    return unit_rms(x, eps) * weight


def unit_rms(x: Array, eps: Number = EPS) -> Array:
    """RMSNorm without weight, the key of Eq. 8: x / sqrt(mean(x^2) + eps). [... D]."""
    return x / ops.sqrt(ops.mean(x * x, keep=True) + ops.lift(x, eps))


def l2_norm(x: Array, eps: Number = L2_EPS) -> Array:
    """L2Norm of Eq. 2 (§2.1.1): x / sqrt(sum x^2 + eps), of length below one. [... K].

    The paper writes no eps; the release adds 1e-6 inside the root (release notes §6.3).
    """
    return x / ops.sqrt(ops.total(x * x, keep=True) + ops.lift(x, eps))


def probabilities(weights: Array) -> Array:
    """Weights divided by their sum (Eq. 9, 13): [A] to [A], the sum must not be 0."""
    return weights / ops.total(weights, keep=True)
