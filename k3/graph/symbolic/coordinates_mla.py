"""Gated MLA in coordinates: Eq. 7, head by head, every key and value built."""

from typing import Any

from k3.graph.symbolic.coordinates import Outputs, Reading, linear, rms, softmax
from k3.graph.symbolic.reading import Entries
from k3.spec import mla


def mla_step(r: Reading) -> Outputs:
    """Eq. 7 head by head, keys and values built from every cache row."""
    x = r.input("x", "D")
    past, past_shared = r.input("latents", "T, R"), r.input("shared", "T, r")
    down = linear(r, r.input("kv_a_proj_with_mqa.weight", "R+r, D"), x, "D")
    own = rms(r, lambda i: down(r.part(0, i)), "R", mla.LATENT_EPS)
    scale = r.input("kv_a_layernorm.weight", "R")
    latent = r.let("latent", "R", lambda i: own(i) * scale(i))

    def latents(t: Any, i: Any) -> Any:
        return r.case(t, lambda n: past(n, i), lambda _: latent(i))

    def shared(t: Any, i: Any) -> Any:
        return r.case(t, lambda n: past_shared(n, i), lambda _: down(r.part(1, i)))

    o = r.let("o", "M, v", attended(r, query(r, x), latents, shared))
    gate = linear(r, r.input("g_proj.weight", "M*v, D"), x, "D")
    out = r.input("o_proj.weight", "D, M*v")

    def y(d: Any) -> Any:
        def one(m: Any, j: Any) -> Any:
            c = r.flat(m, j)
            return out(d, c) * r.call("sigmoid", gate(c)) * o(m, j)

        return r.total("M", lambda m: r.total("v", lambda j: one(m, j)))

    return {
        "latents": ("T+1, R", latents),
        "shared": ("T+1, r", shared),
        "y": ("D", y),
    }


def query(r: Reading, x: Entries) -> Entries:
    """Queries of each head on the axis n+r."""
    down = linear(r, r.input("q_a_proj.weight", "Rq, D"), x, "D")
    unit, scale = (
        rms(r, down, "Rq", mla.LATENT_EPS),
        r.input("q_a_layernorm.weight", "Rq"),
    )
    latent = r.let("q_latent", "Rq", lambda i: unit(i) * scale(i))
    q = linear(r, r.input("q_b_proj.weight", "M*(n+r), Rq"), latent, "Rq")
    return lambda m, i: q(r.flat(m, i))


def attended(r: Reading, q: Entries, latents: Entries, shared: Entries) -> Entries:
    """sum_t p_t v_t of each head, p = softmax of (q_n k_n + q_r k_r) / sqrt(n + r)."""
    up = r.input("kv_b_proj.weight", "M*(n+v), R")
    root = r.call("sqrt", r.size("n+r"))

    def entry(m: Any, j: Any) -> Any:
        def lifted(t: Any, i: Any) -> Any:
            return r.total("R", lambda e: latents(t, e) * up(r.flat(m, i), e))

        def score(t: Any) -> Any:
            content = r.total(
                "n", lambda i: q(m, r.part(0, i)) * lifted(t, r.part(0, i))
            )
            return (
                content + r.total("r", lambda i: q(m, r.part(1, i)) * shared(t, i))
            ) / root

        p = softmax(r, score, "T+1")
        return r.total("T+1", lambda t: p(t) * lifted(t, r.part(1, j)))

    return entry
