"""Kimi Delta Attention of one head, Eq. 1-5 (§2.1.1): token by token and by chunks.

The memory S is [K V]. alpha and Gamma are retentions, not logarithms, so that fractions
can read them; kernels carry g = log alpha and its running sum. The layer is kda_layer.
"""

from collections.abc import Sequence
from fractions import Fraction

from k3.spec import ops
from k3.spec.ops import Array, Number

FLOOR = -5


def update(S: Array, k: Array, v: Array, alpha: Array, beta: Array) -> Array:
    """Eq. 1 (§2.1.1): the memory after one token.

        S' = (I - beta k k^T) Diag(alpha) S + beta k v^T

    S [K V] memory · k [K] unit-norm key · v [V] value
    alpha [K] retention in (0, 1) · beta [] write strength in (0, 1)
    Returns [K V].
    """
    decayed = alpha[:, None] * S
    return decayed + beta * ops.outer(k, v - k @ decayed)


def transition(k: Array, alpha: Array, beta: Array) -> Array:
    """Eq. 1, its matrix: (I - beta k k^T) Diag(alpha), [K] and [K] to [K K]."""
    eye = identity(k)
    return (eye - beta * ops.outer(k, k)) * alpha[None, :]


def identity(like: Array) -> Array:
    """The identity matrix of the width and carrier of a vector [K]: [K K]."""
    width = len(like)
    one, zero = ops.lift(like, 1), ops.lift(like, 0)
    rows = [[one if i == j else zero for j in range(width)] for i in range(width)]
    return ops.matrix(like, rows)


def read(S: Array, q: Array) -> Array:
    """Eq. 1: what a query reads from the updated memory, S^T q. [K V], [K] to [V]."""
    return q @ S


def step(
    S: Array, q: Array, k: Array, v: Array, *, alpha: Array, beta: Array
) -> tuple[Array, Array]:
    """Eq. 1: update, then read. Returns the memory [K V] and the output [V]."""
    after = update(S, k, v, alpha, beta)
    return after, read(after, q)


def recurrent(
    S: Array, q: Array, k: Array, v: Array, *, alpha: Array, beta: Array
) -> tuple[Array, Array]:
    """Eq. 1 over a sequence: q, k, alpha [T K], v [T V], beta [T], T >= 1.

    Returns the last memory [K V] and the outputs [T V].
    """
    out = []
    for t in range(len(q)):
        S, o = step(S, q[t], k[t], v[t], alpha=alpha[t], beta=beta[t])
        out.append(o)
    return S, ops.stack(out)


def gate(z: Array, A_log: Array, floor: Number | None = FLOOR) -> Array:
    """Eq. 5 (§2.1.1): g = floor sigmoid(e^A z), in (floor, 0) for floor < 0.

    z [K] is the projected input plus bias, A_log [] one number per head. K3's floor is
    -5. floor None is the gate of Kimi-Linear, -e^A softplus(z), in (-inf, 0).
    """
    if floor is None:
        return -ops.exp(A_log) * ops.softplus(z)
    return ops.lift(z, floor) * ops.sigmoid(ops.exp(A_log) * z)


def retention(z: Array, A_log: Array, floor: Number | None = FLOOR) -> Array:
    """Eq. 5: alpha = e^g, in (e^floor, 1). [K] to [K]."""
    return ops.exp(gate(z, A_log, floor))


def short_conv(window: Array, w: Array) -> Array:
    """Eq. 2, ShortConv (§2.1.1): y_c = sum_t w[c, W-1-t] window[t, c].

    window [W C] newest first, w [C W] as stored (its last tap meets the current
    token). No bias (the article has one; the release none). Returns [C].
    """
    width = w.shape[1]
    return sum_of([w[:, width - 1 - t] * window[t] for t in range(width)])


def short_conv_history(history: Sequence[Array], w: Array) -> Array:
    """Eq. 2, ShortConv on a list of all tokens [C], newest first, at least one.

    Tokens beyond the width are not read; missing ones count as zero. Returns [C].
    """
    width = min(w.shape[1], len(history))
    return sum_of([w[:, w.shape[1] - 1 - t] * history[t] for t in range(width)])


def short_conv_sequence(x: Array, w: Array) -> Array:
    """Eq. 2, ShortConv of a whole sequence x [T C] from zero history: [T C]."""
    rows = [x[t] for t in range(len(x))]
    return ops.stack([short_conv_history(rows[t::-1], w) for t in range(len(rows))])


def sum_of(items: Sequence[Array]) -> Array:
    """The sum of at least one array, left to right."""
    first, *rest = items
    for item in rest:
        first = first + item
    return first


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
    """(I + L)^-1 of a strictly lower L [C C] as (I-L)(I+L^2)(I+L^4)....

    FlashKDA's way for C = 16: four factors, since L^16 = 0.
    """
    eye = identity(L[0])
    out, power, reach = eye - L, L @ L, 2
    while reach < len(L):
        out = out @ (eye + power)
        power, reach = power @ power, 2 * reach
    return out


def tile_bound(floor: Number = FLOOR, tokens: int = 16) -> Fraction:
    """§2.1.1: the cumulative log-decay of a tile lies in (tokens floor, 0): -80."""
    return Fraction(floor) * tokens
