"""Gated multi-head latent attention without positions, Eq. 7.

The cache is a list, oldest token first, of rows that all heads share: a latent [R] and
a shared key [r]. Causality is what the cache holds; no mask and no rotation exist.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from k3.spec import norm, ops
from k3.spec.ops import Array, Number

# The two latent norms of the release; the paper reading is the config's 1e-5.
LATENT_EPS = Fraction(1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Row:
    """What one token leaves in the cache: latent [R], normed, and shared key [r]."""

    latent: Array
    shared: Array


def row(weights: Mapping[str, Array], x: Array, eps: Number = LATENT_EPS) -> Row:
    """Eq. 7: the cache row of a token x [D]; the shared key is neither normed nor
    rotated. Source: release notes §3.
    """
    down = weights["kv_a_proj_with_mqa.weight"] @ x
    scale = weights["kv_a_layernorm.weight"]
    rank = len(scale)
    return Row(norm.rms_norm(down[:rank], scale, eps), down[rank:])


def queries(
    weights: Mapping[str, Array], x: Array, heads: int, eps: Number = LATENT_EPS
) -> Array:
    """Eq. 7: queries W_b RMSNorm(W_a x), per head content then shared: [H n+r]."""
    latent = norm.rms_norm(
        weights["q_a_proj.weight"] @ x, weights["q_a_layernorm.weight"], eps
    )
    return ops.reshape(weights["q_b_proj.weight"] @ latent, heads, -1)


def up(weights: Mapping[str, Array], heads: int) -> Array:
    """Eq. 7: the key and value maps of the latent, per head [H n+v R]."""
    stored = weights["kv_b_proj.weight"]
    return ops.reshape(stored, heads, -1, stored.shape[1])


def attend(q: Array, keys: Array, values: Array) -> Array:
    """One head: sum_t p_t v_t with p = softmax(K q / sqrt(width)). [d], [T d] to [V].

    At the released sizes the scale is 192^-1/2.
    """
    return ops.softmax(keys @ q / ops.sqrt(ops.lift(q, len(q)))) @ values


def expanded(q: Array, W: Array, latents: Array, shared: Array) -> Array:
    """Eq. 7, expanded: keys and values of one head are built from every cache row.

    q [n+r] · W [n+v R] · latents [T R] · shared [T r]. Returns [V].
    """
    content = len(q) - shared.shape[1]
    keys = ops.concat([latents @ ops.transpose(W[:content]), shared], axis=1)
    return attend(q, keys, latents @ ops.transpose(W[content:]))


def absorbed(q: Array, W: Array, latents: Array, shared: Array) -> Array:
    """Eq. 7, absorbed: the head's maps move to the query and behind the softmax.

    The same function as `expanded`, reading R + r scalars a token. Returns [V].
    """
    content = len(q) - shared.shape[1]
    moved = q[:content] @ W[:content]
    scores = latents @ moved + shared @ q[content:]
    weights = ops.softmax(scores / ops.sqrt(ops.lift(q, len(q))))
    return W[content:] @ (weights @ latents)


def heads_output(
    weights: Mapping[str, Array],
    x: Array,
    latents: Array,
    shared: Array,
    *,
    heads: int,
    eps: Number = LATENT_EPS,
    absorb: bool = False,
) -> Array:
    """Eq. 7: y = W_o [sigmoid(W_g x) * o], o the heads' outputs side by side. [D].

    latents [T R] and shared [T r] are the packed cache, the current token included.
    The gate meets raw outputs: unlike Eq. 6, no norm comes between.
    """
    q, W = queries(weights, x, heads, eps), up(weights, heads)
    form = absorbed if absorb else expanded
    o = ops.concat([form(q[h], W[h], latents, shared) for h in range(heads)])
    return weights["o_proj.weight"] @ (ops.sigmoid(weights["g_proj.weight"] @ x) * o)


def pack(cache: Sequence[Row]) -> tuple[Array, Array]:
    """The list cache as arrays: latents [T R] and shared keys [T r], T >= 1."""
    return ops.stack([r.latent for r in cache]), ops.stack([r.shared for r in cache])


def step(
    weights: Mapping[str, Array],
    cache: Sequence[Row],
    x: Array,
    *,
    heads: int,
    eps: Number = LATENT_EPS,
    absorb: bool = False,
) -> tuple[list[Row], Array]:
    """Eq. 7: one token. Returns the cache with its row at the end, and y [D]."""
    grown = [*cache, row(weights, x, eps)]
    latents, shared = pack(grown)
    y = heads_output(weights, x, latents, shared, heads=heads, eps=eps, absorb=absorb)
    return grown, y


def packed_step(
    weights: Mapping[str, Array],
    latents: Array,
    shared: Array,
    x: Array,
    *,
    heads: int,
    eps: Number = LATENT_EPS,
    absorb: bool = False,
) -> tuple[Array, Array, Array]:
    """Eq. 7 on the packed cache [T R], [T r], T >= 0: the rows [T+1 .] and y [D]."""
    new = row(weights, x, eps)
    latents = ops.concat([latents, new.latent[None, :]])
    shared = ops.concat([shared, new.shared[None, :]])
    y = heads_output(weights, x, latents, shared, heads=heads, eps=eps, absorb=absorb)
    return latents, shared, y


def sequence(
    weights: Mapping[str, Array],
    xs: Sequence[Array],
    *,
    heads: int,
    eps: Number = LATENT_EPS,
    absorb: bool = False,
) -> tuple[list[Row], Array]:
    """Eq. 7 on a whole sequence of tokens [D]: the cache and the outputs [T D]."""
    cache: list[Row] = []
    out = []
    for x in xs:
        cache, y = step(weights, cache, x, heads=heads, eps=eps, absorb=absorb)
        out.append(y)
    return cache, ops.stack(out)


def row_scalars(rank: int, shared: int) -> int:
    """Scalars a token and layer in the latent cache: 512 + 64 = 576."""
    return rank + shared


def expanded_scalars(heads: int, content: int, shared: int, value: int) -> int:
    """Scalars a token and layer if keys and values are kept: 96 (192+128) = 30720."""
    return heads * (content + shared + value)


def shared_once_scalars(heads: int, content: int, shared: int, value: int) -> int:
    """The same with the shared key stored once for all heads: 24640."""
    return heads * (content + value) + shared
