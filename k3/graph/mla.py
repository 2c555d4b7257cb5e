"""Gated MLA without positions as a graph on the packed cache: Eq. 7.

latents [T, R] and shared [T, r] hold T past tokens; M heads of content n, value v.
"""

from k3.graph import primitives as p
from k3.graph.dims import plus
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.term import Term, let, spread


def row(weights: Inputs, x: Term, numbers: Numbers = RELEASED) -> tuple[Term, Term]:
    """The token's cache row: normed latent [R] and raw shared key [r]."""
    down = let("down", p.linear(weights.real("kv_a_proj_with_mqa.weight", "R+r, D"), x))
    scale = weights.real("kv_a_layernorm.weight", "R")
    latent = p.rms_norm(p.cut(down, 0, "R"), scale, numbers.latent_eps)
    return let("latent", latent), let("key", p.cut(down, "R", "r"))


def queries(weights: Inputs, x: Term, numbers: Numbers = RELEASED) -> tuple[Term, Term]:
    """W_b RMSNorm(W_a x) per head: content [M, n] and shared part [M, r]."""
    down = p.linear(weights.real("q_a_proj.weight", "Rq, D"), x)
    scale = weights.real("q_a_layernorm.weight", "Rq")
    latent = let("q_latent", p.rms_norm(down, scale, numbers.latent_eps))
    both = p.linear(weights.real("q_b_proj.weight", "M*(n+r), Rq"), latent)
    q = p.reshape(both, "M", plus("n", "r"))
    content, shared = p.cut(q, 0, "n", axis=1), p.cut(q, "n", "r", axis=1)
    return let("q_content", content), let("q_shared", shared)


def up(weights: Inputs) -> tuple[Term, Term]:
    """The latent's key map [M, n, R] and value map [M, v, R]."""
    stored = weights.real("kv_b_proj.weight", "M*(n+v), R")
    both = p.reshape(stored, "M", plus("n", "v"), "R")
    keys, values = p.cut(both, 0, "n", axis=1), p.cut(both, "n", "v", axis=1)
    return let("key_map", keys), let("value_map", values)


def attend(
    q: tuple[Term, Term],
    maps: tuple[Term, Term],
    cache: tuple[Term, Term],
    *,
    absorb: bool = False,
) -> Term:
    """softmax((q_n K_n + q_r K_r) / sqrt(n + r)) V for all heads. [M, v].

    absorb False builds keys and values of every row, True moves the maps to the query
    and behind the softmax: the same function.
    """
    (q_content, q_shared), (key_map, value_map), (latents, shared) = q, maps, cache
    if absorb:
        moved = let("moved", p.contract("mn,mnl->ml", q_content, key_map))
        content = p.contract("ml,tl->mt", moved, latents)
    else:
        keys = let("keys", p.contract("tl,mnl->mtn", latents, key_map))
        content = p.contract("mn,mtn->mt", q_content, keys)
    scores = let("scores", content + p.contract("mr,tr->mt", q_shared, shared))
    width = p.sqrt(p.size(plus("n", "r")))
    weights = let("p", p.softmax(scores / spread(width, scores.shape)))
    if absorb:
        mixed = let("mixed", p.contract("mt,tl->ml", weights, latents))
        return let("o", p.contract("ml,mvl->mv", mixed, value_map))
    values = let("values", p.contract("tl,mvl->mtv", latents, value_map))
    return let("o", p.contract("mt,mtv->mv", weights, values))


def step(
    weights: Inputs, latents: Term, shared: Term, x: Term, numbers: Numbers = RELEASED
) -> tuple[Term, Term, Term]:
    """One token: the cache with its row, [T+1, R] and [T+1, r], and the output [D]."""
    latent, key = row(weights, x, numbers)
    cache = p.append(latents, latent), p.append(shared, key)
    cache = let("latents_next", cache[0]), let("shared_next", cache[1])
    q, maps = queries(weights, x, numbers), up(weights)
    o = p.flatten(attend(q, maps, cache, absorb=numbers.absorb))
    gate = p.sigmoid(p.linear(weights.real("g_proj.weight", "M*v, D"), x))
    gated = let("gated", let("output_gate", gate) * o)
    y = p.linear(weights.real("o_proj.weight", "D, M*v"), gated)
    return *cache, let("y", y)
