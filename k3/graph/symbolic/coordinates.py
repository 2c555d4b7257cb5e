"""The packed steps in coordinates: each output entry as sums over places.

These are the per-head, per-entry forms of the spec, for all sizes. Tests hold their
float reading against `k3.spec`; `decide` holds their symbolic reading against graphs.
"""

from fractions import Fraction
from typing import Any

from k3.graph.symbolic.reading import Entries
from k3.spec import moe, norm, situ

Reading = Any
# name -> (shape, entries): the outputs of a step.
Outputs = dict[str, tuple[str, Entries]]


def linear(r: Reading, W: Entries, x: Entries, dim: str) -> Entries:
    """(W x)_o = sum_i W_oi x_i."""
    return lambda o: r.total(dim, lambda i: W(o, i) * x(i))


def rms(r: Reading, x: Entries, dim: str, eps: Fraction = norm.EPS) -> Entries:
    """x_i / sqrt(mean x^2 + eps)."""
    square = r.total(dim, lambda i: x(i) * x(i)) / r.size(dim)
    root = r.call("sqrt", square + eps)
    return lambda i: x(i) / root


def softmax(r: Reading, scores: Entries, dim: str) -> Entries:
    """e^s_i / sum_j e^s_j."""
    bottom = r.total(dim, lambda j: r.call("exp", scores(j)))
    return lambda i: r.call("exp", scores(i)) / bottom


def soft_cap(r: Reading, z: Any, cap: int) -> Any:
    """cap tanh(z / cap)."""
    return r.call("tanh", z / cap) * cap


def gated(r: Reading, gate: Any, up: Any) -> Any:
    """Eq. 12: SiTU of one entry."""
    capped = soft_cap(r, gate, situ.BETA) * r.call("sigmoid", gate)
    return capped * soft_cap(r, up, situ.LINEAR_BETA)


def mlp(r: Reading, x: Entries, hidden: str, prefix: str = "") -> Entries:
    """Eq. 12: y_o = sum_f down_of SiTU((gate x)_f, (up x)_f)."""
    gate = r.input(f"{prefix}gate_proj.weight", f"{hidden}, D")
    up = r.input(f"{prefix}up_proj.weight", f"{hidden}, D")
    down = r.input(f"{prefix}down_proj.weight", f"D, {hidden}")
    g, u = linear(r, gate, x, "D"), linear(r, up, x, "D")
    return linear(r, down, lambda f: gated(r, g(f), u(f)), hidden)


def expert(r: Reading) -> Outputs:
    """Eq. 12."""
    return {"y": ("D", mlp(r, r.input("x", "D"), "F"))}


def retrieved(r: Reading, q: Entries, values: Entries, dim: str) -> Entries:
    """Eq. 8-9: h_d = sum_j p_j v_jd, p = softmax_j(sum_d q_d v_jd / rms(v_j))."""

    def score(j: Any) -> Any:
        unit = rms(r, lambda d: values(j, d), "D")
        return r.total("D", lambda d: q(d) * unit(d))

    p = softmax(r, score, dim)
    return lambda d: r.total(dim, lambda j: p(j) * values(j, d))


def attn_res(r: Reading) -> Outputs:
    """Eq. 8-9."""
    return {"h": ("D", retrieved(r, r.input("q", "D"), r.input("values", "N, D"), "N"))}


def attn_res_depth(r: Reading) -> Outputs:
    """Eq. 10: the running sum is a source, then takes both outputs and is committed."""
    rows, partial = r.input("rows", "N, D"), r.input("partial", "D")
    weight = r.input("self_attention_res_norm.weight", "D")
    proj = r.input("self_attention_res_proj.weight", "1, D")
    token, channel = r.input("token_out", "D"), r.input("channel_out", "D")

    def source(j: Any, d: Any) -> Any:
        return r.case(j, lambda n: rows(n, d), lambda _: partial(d))

    def row(j: Any, d: Any) -> Any:
        last = partial(d) + token(d) + channel(d)
        return r.case(j, lambda n: rows(n, d), lambda _: last)

    h = retrieved(r, lambda d: weight(d) * proj(r.row(0), d), source, "N+1")
    return {"h": ("D", h), "rows": ("N+1, D", row)}


def moe_layer(r: Reading) -> Outputs:
    """Eq. 11 and 13: the experts at the A largest biased scores."""
    x = r.input("x", "D")
    logits = linear(r, r.input("gate.weight", "E, D"), x, "D")
    scores = r.let("scores", "E", lambda e: r.call("sigmoid", logits(e)))
    bias = r.input("gate.e_score_correction_bias", "E")

    def chosen(a: Any) -> Any:
        return r.top("E", lambda e: scores(e) + bias(e), a)

    bottom = r.total("A", lambda a: scores(chosen(a))) + moe.TINY
    z = linear(r, r.input("routed_expert_down_proj.weight", "L, D"), x, "D")
    w1, w2, w3 = (
        r.input(f"experts.{n}.weight", s)
        for n, s in (("w1", "E,F,L"), ("w2", "E,L,F"), ("w3", "E,F,L"))
    )

    def hidden(e: Any, f: Any) -> Any:
        gate = r.total("L", lambda j: w1(e, f, j) * z(j))
        return gated(r, gate, r.total("L", lambda j: w3(e, f, j) * z(j)))

    def mixed(i: Any) -> Any:
        def one(a: Any) -> Any:
            e = chosen(a)
            out = r.total("F", lambda f: w2(e, i, f) * hidden(e, f))
            return scores(e) / bottom * out

        return r.total("A", one)

    u = r.let("u", "L", mixed)
    unit, scale = rms(r, u, "L"), r.input("routed_expert_norm.weight", "L")
    wide = linear(
        r,
        r.input("routed_expert_up_proj.weight", "D, L"),
        lambda i: unit(i) * scale(i),
        "L",
    )
    shared = mlp(r, x, "Fs", "shared_experts.")
    return {"y": ("D", lambda d: shared(d) + wide(d))}
