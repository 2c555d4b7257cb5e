"""One Kimi Delta Attention layer, Eq. 2 and 5-6 (§2.1.1), token by token.

Windows and histories are newest first: row 0 is the current token, and tokens before
the first are zero vectors.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from k3.spec import kda, norm, ops
from k3.spec.ops import Array, Number

Reading = Literal["release", "paper"]


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
    return ops.silu(kda.short_conv(rows, conv))


def prepare(
    weights: Mapping[str, Array],
    window: Array,
    *,
    heads: int,
    floor: Number | None = kda.FLOOR,
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
        [kda.retention(z[h], weights["A_log"][h], floor) for h in range(heads)]
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


def step(
    weights: Mapping[str, Array],
    S: Array,
    window: Array,
    x: Array,
    *,
    heads: int,
    floor: Number | None = kda.FLOOR,
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
        kda.step(S[h], q[h], k[h], v[h], alpha=alpha[h], beta=beta[h])
        for h in range(heads)
    ]
    o = ops.stack([out for _, out in stepped])
    return ops.stack([s for s, _ in stepped]), window, readout(weights, x, o, eps)


def history_step(
    weights: Mapping[str, Array],
    S: Array,
    history: Sequence[Array],
    x: Array,
    *,
    heads: int,
    floor: Number | None = kda.FLOOR,
    eps: Number = norm.EPS,
    reading: Reading = "release",
) -> tuple[Array, list[Array], Array]:
    """step with the untruncated list of layer inputs, newest first.

    Returns S', [x, *history] and the output [D]; the theorem is that packing the list
    to W rows gives step.
    """
    grown = [x, *history]
    width = weights["q_conv1d.weight"].shape[2]
    blank = pack([ops.zeros(x, x.shape)], width)
    before = pack(history, width) if history else blank
    after, _, y = step(
        weights, S, before, x, heads=heads, floor=floor, eps=eps, reading=reading
    )
    return after, grown, y


def sequence(
    weights: Mapping[str, Array],
    xs: Sequence[Array],
    *,
    heads: int,
    floor: Number | None = kda.FLOOR,
    eps: Number = norm.EPS,
    reading: Reading = "release",
) -> tuple[Array, Array]:
    """The layer on a whole sequence of tokens [D] from the empty state.

    Returns the last memory [H K V] and the outputs [T D].
    """
    S, window = empty_state(weights, xs[0], heads=heads)
    out = []
    for x in xs:
        S, window, y = step(
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
