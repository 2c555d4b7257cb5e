"""Kimi Delta Attention by chunks, Eq. 3-4 (§2.1.1): the same map as kda.recurrent.

alpha [C K] and Gamma are retentions, not logarithms, so that fractions can read them;
kernels carry g = log alpha and its running sum G = log Gamma.
"""

from collections.abc import Sequence

from k3.spec import kda, ops
from k3.spec.ops import Array


def cumulative(alpha: Array) -> Array:
    """Eq. 3 (§2.1.1): Gamma_i = prod_{r <= i} alpha_r, per channel. [C K] to [C K]."""
    rows = [alpha[0]]
    for i in range(1, len(alpha)):
        rows.append(rows[-1] * alpha[i])
    return ops.stack(rows)


def decay(alpha: Array, i: int, j: int) -> Array:
    """Eq. 3 (§2.1.1): gamma_{i->j} = prod_{r=i..j} alpha_r, of ones when i > j. [K]."""
    out = alpha[0] * 0 + 1
    for r in range(i, j + 1):
        out = out * alpha[r]
    return out


def lower(x: Array, diagonal: bool) -> Array:
    """Tril of Eq. 4: [C C] with the part above the diagonal (or from it) set to 0."""
    reach = 1 if diagonal else 0
    zero = x[0, 0] * 0
    rows = [
        [x[i, j] if j < i + reach else zero for j in range(len(x))]
        for i in range(len(x))
    ]
    return ops.matrix(x, rows)


def scores(q: Array, k: Array, Gamma: Array, diagonal: bool = True) -> Array:
    """Eq. 4 (§2.1.1): A = Tril[(Q * Gamma) (K / Gamma)^T], [C C].

    q, k, Gamma [C K]. diagonal False gives the strictly lower part that WY inverts.
    """
    return lower((q * Gamma) @ ops.transpose(k / Gamma), diagonal)


def wy(k: Array, v: Array, Gamma: Array, beta: Array) -> tuple[Array, Array]:
    """Eq. 4 (§2.1.1): W [C K] and U [C V] of the WY form, by forward substitution.

    (I + Diag(beta) A) [W U] = Diag(beta) [Gamma * K, V], with A = strict Tril of
    (K * Gamma)(K / Gamma)^T. k, Gamma [C K], v [C V], beta [C].
    """
    A = scores(k, k, Gamma, diagonal=False)
    right = ops.concat([Gamma * k, v], axis=1) * beta[:, None]
    rows: list[Array] = []
    for i in range(len(k)):
        row = right[i]
        for j in range(i):
            row = row - beta[i] * A[i, j] * rows[j]
        rows.append(row)
    both = ops.stack(rows)
    return both[:, : k.shape[1]], both[:, k.shape[1] :]


def chunk(
    S: Array, q: Array, k: Array, v: Array, *, alpha: Array, beta: Array
) -> tuple[Array, Array]:
    """Eq. 4 (§2.1.1): C tokens at once.

        V~ = U - W S      O = (Gamma * Q) S + A V~
        S' = Gamma_C * S + (K * Gamma_C / Gamma)^T V~

    S [K V] · q, k, alpha [C K] · v [C V] · beta [C]. Returns S' [K V] and O [C V].
    """
    Gamma = cumulative(alpha)
    W, U = wy(k, v, Gamma, beta)
    V = U - W @ S
    O_ = (Gamma * q) @ S + scores(q, k, Gamma) @ V
    last = Gamma[-1]
    return last[:, None] * S + ops.transpose(k * (last / Gamma)) @ V, O_


def chunked(
    S: Array,
    q: Array,
    k: Array,
    v: Array,
    *,
    alpha: Array,
    beta: Array,
    sizes: Sequence[int],
) -> tuple[Array, Array]:
    """A sequence cut into chunks of the given sizes, each by Eq. 4.

    q, k, alpha [T K] · v [T V] · beta [T] · sum of sizes = T. Returns S', O [T V].
    """
    out, start = [], 0
    for size in sizes:
        at = slice(start, start + size)
        S, o = chunk(S, q[at], k[at], v[at], alpha=alpha[at], beta=beta[at])
        out.append(o)
        start += size
    return S, ops.concat(out)


def nilpotent_inverse(L: Array) -> Array:
    """(I + L)^-1 of a strictly lower L [C C] as (I-L)(I+L^2)(I+L^4)... (§5.1).

    FlashKDA's way for C = 16: four factors, since L^16 = 0.
    """
    eye = kda.identity(L[0])
    out, power, reach = eye - L, L @ L, 2
    while reach < len(L):
        out = out @ (eye + power)
        power, reach = power @ power, 2 * reach
    return out
