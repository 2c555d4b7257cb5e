"""Kimi Delta Attention in coordinates: Eq. 1, 2, 5 and 6, head by head."""

from typing import Any

from k3.graph.symbolic.coordinates import Outputs, Reading, linear, rms
from k3.graph.symbolic.reading import Entries
from k3.spec import kda, norm


def updated(
    r: Reading, S: Entries, k: Entries, v: Entries, *, alpha: Entries, beta: Entries
) -> Entries:
    """Eq. 1: S'_hij = a_hi S_hij + b_h k_hi (v_hj - sum_l k_hl a_hl S_hlj)."""

    def entry(h: Any, i: Any, j: Any) -> Any:
        recalled = r.total("K", lambda m: k(h, m) * alpha(h, m) * S(h, m, j))
        return alpha(h, i) * S(h, i, j) + beta(h) * k(h, i) * (v(h, j) - recalled)

    return entry


def read(r: Reading, S: Entries, q: Entries) -> Entries:
    """o_hj = sum_i q_hi S_hij."""
    return lambda h, j: r.total("K", lambda i: q(h, i) * S(h, i, j))


def kda_update(r: Reading) -> Outputs:
    """Eq. 1 head by head, entry by entry."""
    S, q, k = (r.input(n, s) for n, s in (("S", "H,K,V"), ("q", "H,K"), ("k", "H,K")))
    v, alpha, beta = r.input("v", "H,V"), r.input("alpha", "H,K"), r.input("beta", "H")
    after = updated(r, S, k, v, alpha=alpha, beta=beta)
    return {"S": ("H, K, V", after), "o": ("H, V", read(r, after, q))}


def stream(r: Reading, name: str, rows: Entries, width: str) -> Entries:
    """Eq. 2: Swish(sum_t w_c,W-1-t (W x_t)_c), rows x_t newest first."""
    W = r.input(f"{name}_proj.weight", f"H*{width}, D")
    taps = r.input(f"{name}_conv1d.weight", f"H*{width}, 1, 1+P")

    def entry(h: Any, i: Any) -> Any:
        c = r.flat(h, i)

        def tap(t: Any) -> Any:
            product = r.total("D", lambda d: rows(t, d) * W(c, d))
            return taps(c, r.row(0), r.back("1+P", t)) * product

        return r.call("silu", r.total("1+P", tap))

    return entry


def l2(r: Reading, x: Entries, dim: str) -> Entries:
    """x_hi / sqrt(sum_j x_hj^2 + eps)."""

    def entry(h: Any, i: Any) -> Any:
        square = r.total(dim, lambda j: x(h, j) * x(h, j))
        return x(h, i) / r.call("sqrt", square + norm.L2_EPS)

    return entry


def decay(r: Reading, x: Entries) -> Entries:
    """Eq. 5: alpha_hi = exp(floor sigmoid(e^A_h (W_up W_down x + b)_hi))."""
    down, up = (
        r.input("f_a_proj.weight", "Rf, D"),
        r.input("f_b_proj.weight", "H*K, Rf"),
    )
    bias, A_log = r.input("dt_bias", "H*K"), r.input("A_log", "H")
    z = linear(r, up, linear(r, down, x, "D"), "Rf")

    def entry(h: Any, i: Any) -> Any:
        c = r.flat(h, i)
        inside = r.call("exp", A_log(h)) * (z(c) + bias(c))
        return r.call("exp", r.call("sigmoid", inside) * kda.FLOOR)

    return entry


def readout(r: Reading, x: Entries, o: Entries) -> Entries:
    """Eq. 6: y_d = sum_hj W_o,d,hj sigmoid((W_g x)_hj) RMSNorm(o_h)_j w_j."""
    out, weight = r.input("o_proj.weight", "D, H*V"), r.input("o_norm.weight", "V")
    g = linear(r, r.input("g_proj.weight", "H*V, D"), x, "D")

    def entry(d: Any) -> Any:
        def head(h: Any) -> Any:
            normed = rms(r, lambda j: o(h, j), "V")

            def one(j: Any) -> Any:
                c = r.flat(h, j)
                return out(d, c) * r.call("sigmoid", g(c)) * normed(j) * weight(j)

            return r.total("V", one)

        return r.total("H", head)

    return entry


def kda_layer(r: Reading) -> Outputs:
    """Eq. 1, 2, 5, 6 on the packed memory and window."""
    S, window, x = r.input("S", "H,K,V"), r.input("window", "1+P, D"), r.input("x", "D")

    def rolled(row: Any, d: Any) -> Any:
        return r.case(row, lambda _: x(d), lambda t: window(r.same_number(t), d))

    wide, root = "H, K", r.call("sqrt", r.size("K"))
    q_stream = r.let("q_stream", wide, stream(r, "q", rolled, "K"))
    k_stream = r.let("k_stream", wide, stream(r, "k", rolled, "K"))
    v = r.let("v", "H, V", stream(r, "v", rolled, "V"))
    q_unit = l2(r, q_stream, "K")
    q = r.let("q", wide, lambda h, i: q_unit(h, i) / root)
    k = r.let("k", wide, l2(r, k_stream, "K"))
    alpha = r.let("alpha", wide, decay(r, x))
    b = linear(r, r.input("b_proj.weight", "H, D"), x, "D")
    beta = r.let("beta", "H", lambda h: r.call("sigmoid", b(h)))
    after = r.let("S_next", "H, K, V", updated(r, S, k, v, alpha=alpha, beta=beta))
    o = r.let("o", "H, V", read(r, after, q))
    y = readout(r, x, o)
    return {"S": ("H, K, V", after), "window": ("1+P, D", rolled), "y": ("D", y)}
