"""Kimi Delta Attention as a graph, heads packed: Eq. 1, 2, 5 and 6.

S [H, K, V] memory, window [1+P, D] earlier layer inputs, newest first.
"""

from k3.graph import primitives as p
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.term import Term, let, spread


def roll(window: Term, x: Term) -> Term:
    """The window after one token: x in row 0, the oldest row gone. [1+P, D]."""
    kept = p.cut(window, 0, "P")
    return let("rolled", p.concat(p.reshape(x, 1, *x.shape), kept))


def short_conv(rows: Term, taps: Term) -> Term:
    """Eq. 2: sum_t taps[c, W-1-t] rows[t, c], rows newest first. [W, C] to [C]."""
    return p.contract("wc,cw->c", rows, p.flip(taps, axis=1))


def stream(weights: Inputs, name: str, window: Term, width: str) -> Term:
    """Eq. 2: Swish(ShortConv(W x)) of stream q, k or v, split into heads. [H, ...]."""
    W = weights.real(f"{name}_proj.weight", f"H*{width}, D")
    taps = weights.real(f"{name}_conv1d.weight", f"H*{width}, 1, 1+P")
    taps = p.reshape(taps, *taps.shape[:1], *taps.shape[2:])
    rows = let(f"{name}_rows", p.contract("wd,cd->wc", window, W))
    conv = let(f"{name}_conv", short_conv(rows, taps))
    return let(f"{name}_stream", p.reshape(p.silu(conv), "H", width))


def decay(weights: Inputs, x: Term, numbers: Numbers) -> Term:
    """Eq. 5: alpha = exp(floor sigmoid(e^A (W_up W_down x + b))). [H, K]."""
    low = p.linear(weights.real("f_a_proj.weight", "Rf, D"), x)
    z = p.linear(weights.real("f_b_proj.weight", "H*K, Rf"), low)
    z = let("z", p.reshape(z + weights.real("dt_bias", "H*K"), "H", "K"))
    return retention(z, weights.real("A_log", "H"), numbers)


def retention(z: Term, A_log: Term, numbers: Numbers = RELEASED) -> Term:
    """Eq. 5 on the projected input z [H, K] and A_log [H]: alpha [H, K]."""
    rate = p.exp(A_log)
    if numbers.floor is None:
        return p.exp(-p.contract("h,hk->hk", rate, p.softplus(z)))
    slow = p.sigmoid(let("gate_in", p.contract("h,hk->hk", rate, z)))
    return p.exp(numbers.floor * slow)


def prepare(
    weights: Inputs, window: Term, numbers: Numbers = RELEASED
) -> tuple[Term, Term, Term, Term, Term]:
    """Eq. 2 and 5: q, k [H, K], v [H, V], alpha [H, K] and beta [H]."""
    x = let("x_now", p.pick(window, 0))
    q = p.l2_norm(stream(weights, "q", window, "K"), numbers.l2_eps)
    k = p.l2_norm(stream(weights, "k", window, "K"), numbers.l2_eps)
    v = stream(weights, "v", window, "V")
    q = let("q", q / spread(p.sqrt(p.size("K")), q.shape))
    beta = p.sigmoid(p.linear(weights.real("b_proj.weight", "H, D"), x))
    alpha = decay(weights, x, numbers)
    return q, let("k", k), let("v", v), let("alpha", alpha), let("beta", beta)


def update(S: Term, k: Term, v: Term, alpha: Term, beta: Term) -> Term:
    """Eq. 1 for all heads: S' = a S + beta k (v - k^T (a S))^T. [H, K, V]."""
    decayed = let("decayed", p.contract("hk,hkv->hkv", alpha, S))
    recalled = let("recalled", p.contract("hk,hkv->hv", k, decayed))
    written = let("written", p.contract("h,hk,hv->hkv", beta, k, v - recalled))
    return let("S_next", decayed + written)


def read(S: Term, q: Term) -> Term:
    """Eq. 1: S^T q for all heads. [H, V]."""
    return let("o", p.contract("hkv,hk->hv", S, q))


def output_gate(weights: Inputs, x: Term, numbers: Numbers = RELEASED) -> Term:
    """Eq. 6: sigmoid(W_g x), full rank or low rank. [H*V]."""
    if numbers.full_rank_gate:
        return p.sigmoid(p.linear(weights.real("g_proj.weight", "H*V, D"), x))
    low = p.linear(weights.real("g_a_proj.weight", "Rg, D"), x)
    return p.sigmoid(p.linear(weights.real("g_b_proj.weight", "H*V, Rg"), low))


def readout(weights: Inputs, x: Term, o: Term, numbers: Numbers = RELEASED) -> Term:
    """Eq. 6: W_o [sigmoid(W_g x) * RMSNorm(o)], normed per head. [D]."""
    normed = p.rms_norm(o, weights.real("o_norm.weight", "V"), numbers.eps)
    gate = let("output_gate", output_gate(weights, x, numbers))
    gated = let("gated", gate * let("normed", p.flatten(normed)))
    return let("y", p.linear(weights.real("o_proj.weight", "D, H*V"), gated))


def step(
    weights: Inputs, S: Term, window: Term, x: Term, numbers: Numbers = RELEASED
) -> tuple[Term, Term, Term]:
    """One token of the layer: S', window' and the output [D]."""
    rolled = roll(window, x)
    q, k, v, alpha, beta = prepare(weights, rolled, numbers)
    after = update(S, k, v, alpha, beta)
    return after, rolled, readout(weights, x, read(after, q), numbers)
