"""Kimi Delta Attention, Eq. 1-6 (§2.1.1): one head, then one layer.

The memory S is [K V]. Windows and histories are newest first: row 0 is the current
token, and tokens before the first are zero vectors. Chunk forms are in kda_chunk.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from k3.spec import norm, ops
from k3.spec.ops import Array, Number

FLOOR = -5
Reading = Literal["release", "paper"]


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


def log_decay(z: Array, A_log: Array, floor: Number | None = FLOOR) -> Array:
    """Eq. 5 (§2.1.1): g = floor sigmoid(e^A z), in (floor, 0) for floor < 0.

    z [K] is the projected input plus bias, A_log [] one number per head. K3's floor is
    -5. floor None is the gate of Kimi-Linear, -e^A softplus(z), in (-inf, 0).
    """
    if floor is None:
        return -ops.exp(A_log) * ops.softplus(z)
    return ops.lift(z, floor) * ops.sigmoid(ops.exp(A_log) * z)


def retention(z: Array, A_log: Array, floor: Number | None = FLOOR) -> Array:
    """Eq. 5: alpha = e^g, in (e^floor, 1). [K] to [K]."""
    return ops.exp(log_decay(z, A_log, floor))


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


def roll(window: Array, x: Array) -> Array:
    """The packed history after one token: x in row 0, the oldest row gone. [W D]."""
    return ops.concat([x[None, :], window[:-1]])


def pack(history: Sequence[Array], width: int) -> Array:
    """A newest-first list of tokens [D], at least one, as a zero-padded [W D]."""
    rows = list(history[:width])
    blank = ops.zeros(rows[0], rows[0].shape)
    return ops.stack(rows + [blank] * (width - len(rows)))


def project(weights: Mapping[str, Array], name: str, window: Array) -> Array:
    """Eq. 2: Swish(ShortConv(W x)) of stream q, k or v. window [W D] to [H*K]."""
    rows = window @ ops.transpose(weights[f"{name}_proj.weight"])
    conv = weights[f"{name}_conv1d.weight"][:, 0, :]
    return ops.silu(short_conv(rows, conv))


def prepare(
    weights: Mapping[str, Array],
    window: Array,
    *,
    heads: int,
    floor: Number | None = FLOOR,
    reading: Reading = "release",
) -> tuple[Array, Array, Array, Array, Array]:
    """Eq. 2 and 5: q, k [H K], v [H V], alpha [H K], beta [H] of the newest token.

    window [W D] holds layer inputs. reading "release" multiplies q by K^-1/2, which
    Eq. 1 and 6 of the paper omit; after Eq. 6's RMSNorm it acts through eps alone.
    """
    x = window[0]
    q, k, v = (ops.reshape(project(weights, name, window), heads, -1) for name in "qkv")
    z = weights["f_b_proj.weight"] @ (weights["f_a_proj.weight"] @ x)
    z = ops.reshape(z + weights["dt_bias"], heads, -1)
    alpha = ops.stack(
        [retention(z[h], weights["A_log"][h], floor) for h in range(heads)]
    )
    beta = ops.sigmoid(weights["b_proj.weight"] @ x)
    q = norm.l2_norm(q)
    if reading == "release":
        q = q / ops.sqrt(ops.lift(q, q.shape[1]))
    return q, norm.l2_norm(k), v, alpha, beta


def output_gate(weights: Mapping[str, Array], x: Array) -> Array:
    """Eq. 6: sigmoid(W_g x), [D] to [H*V]; low rank where the config says so."""
    if "g_proj.weight" in weights:
        return ops.sigmoid(weights["g_proj.weight"] @ x)
    low = weights["g_a_proj.weight"] @ x
    return ops.sigmoid(weights["g_b_proj.weight"] @ low)


def readout(
    weights: Mapping[str, Array], x: Array, o: Array, eps: Number = norm.EPS
) -> Array:
    """Eq. 6: y = W_o [sigmoid(W_g x) * RMSNorm(o)], o [H V] normed per head. [D]."""
    normed = ops.reshape(norm.rms_norm(o, weights["o_norm.weight"], eps), -1)
    return weights["o_proj.weight"] @ (output_gate(weights, x) * normed)


def layer_step(
    weights: Mapping[str, Array],
    S: Array,
    window: Array,
    x: Array,
    *,
    heads: int,
    floor: Number | None = FLOOR,
    eps: Number = norm.EPS,
    reading: Reading = "release",
) -> tuple[Array, Array, Array]:
    """Eq. 1, 2, 5, 6: one token of the layer on its packed state.

    S [H K V], window [W D] of earlier layer inputs newest first, x [D].
    Returns S', window' and the output [D].
    """
    window = roll(window, x)
    q, k, v, alpha, beta = prepare(
        weights, window, heads=heads, floor=floor, reading=reading
    )
    stepped = [
        step(S[h], q[h], k[h], v[h], alpha=alpha[h], beta=beta[h]) for h in range(heads)
    ]
    o = ops.stack([out for _, out in stepped])
    return ops.stack([s for s, _ in stepped]), window, readout(weights, x, o, eps)


def layer_history_step(
    weights: Mapping[str, Array],
    S: Array,
    history: Sequence[Array],
    x: Array,
    *,
    heads: int,
    floor: Number | None = FLOOR,
    eps: Number = norm.EPS,
    reading: Reading = "release",
) -> tuple[Array, list[Array], Array]:
    """layer_step with the untruncated list of layer inputs, newest first.

    Returns S', [x, *history] and the output [D]; the theorem is that packing the list
    to W rows gives layer_step.
    """
    grown = [x, *history]
    width = weights["q_conv1d.weight"].shape[2]
    blank = pack([ops.zeros(x, x.shape)], width)
    before = pack(history, width) if history else blank
    after, _, y = layer_step(
        weights, S, before, x, heads=heads, floor=floor, eps=eps, reading=reading
    )
    return after, grown, y


def layer_sequence(
    weights: Mapping[str, Array],
    xs: Sequence[Array],
    *,
    heads: int,
    floor: Number | None = FLOOR,
    eps: Number = norm.EPS,
    reading: Reading = "release",
) -> tuple[Array, Array]:
    """The layer on a whole sequence of tokens [D] from the empty state.

    Returns the last memory [H K V] and the outputs [T D].
    """
    S, window = empty_state(weights, xs[0], heads=heads)
    out = []
    for x in xs:
        S, window, y = layer_step(
            weights, S, window, x, heads=heads, floor=floor, eps=eps, reading=reading
        )
        out.append(y)
    return S, ops.stack(out)


def empty_state(
    weights: Mapping[str, Array], like: Array, *, heads: int
) -> tuple[Array, Array]:
    """Zero memory [H K V] and zero window [W D] for tokens like `like` [D]."""
    key = len(weights["k_proj.weight"]) // heads
    value = len(weights["v_proj.weight"]) // heads
    width = weights["q_conv1d.weight"].shape[2]
    return ops.zeros(like, (heads, key, value)), ops.zeros(like, (width, len(like)))


def tile_bound(floor: Number = FLOOR, tokens: int = 16) -> Fraction:
    """§2.1.1: the cumulative log-decay of a tile lies in (tokens floor, 0): -80."""
    return Fraction(floor) * tokens
