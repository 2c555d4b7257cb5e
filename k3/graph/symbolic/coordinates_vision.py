"""MoonViT-V2 in coordinates: embed, block, merge and project, the whole encoder.

One image: rows h2*a and columns w2*b of patches on one axis.
"""

from typing import Any

from k3.graph.symbolic.coordinates import Outputs, Reading, linear, rms, softmax
from k3.graph.symbolic.reading import Entries, Within
from k3.spec import vision

WIDTH = "e+e"
PATCHES = "h2*a*w2*b"
WIDE = "a*b*(e+e)"


def embed(r: Reading) -> Outputs:
    """x_n = kernel patch_n + the table stretched to (row, column) of n."""
    kernel = r.input("patch_embed.proj.weight", f"{WIDTH}, c, x, y")
    table = r.input("patch_embed.pos_emb.weight", f"Hp, Wp, {WIDTH}")
    patches = r.input("patches", f"{PATCHES}, c, x, y")
    down, across = r.bilinear("h2*a", "Hp"), r.bilinear("w2*b", "Wp")

    def entry(n: Any, e: Any) -> Any:
        def pixel(c: Any, x: Any, y: Any) -> Any:
            return kernel(e, c, x, y) * patches(n, c, x, y)

        def place(i: Any, j: Any) -> Any:
            row, column = halves(r, n)
            return down(row, i) * across(column, j) * table(i, j, e)

        dot = r.total(
            "c",
            lambda c: r.total("x", lambda x: r.total("y", lambda y: pixel(c, x, y))),
        )
        return dot + r.total("Hp", lambda i: r.total("Wp", lambda j: place(i, j)))

    return {"x": (f"{PATCHES}, {WIDTH}", entry)}


def halves(r: Reading, n: Any) -> tuple[Any, Any]:
    """Row and column of a patch."""
    h, a, w, b = r.factors(n)
    return r.flat(h, a), r.flat(w, b)


def normed(r: Reading, x: Entries, name: str) -> Entries:
    """RMSNorm of each patch."""
    weight = r.input(f"{name}.weight", WIDTH)

    def entry(n: Any, e: Any) -> Any:
        unit = rms(r, lambda i: x(n, i), WIDTH, vision.EPS)
        return unit(e) * weight(e)

    return entry


def turned(r: Reading, raw: Entries) -> Entries:
    """Adjacent channels by column (slot 0) or row (slot 1) times 10000^(-i/d)."""
    base = r.call("log", r.lift(10000))

    def entry(one: Any, n: Any, g: Any, channel: Any) -> Any:
        i, four = r.factors(channel)
        slot, half = divmod(r.literal(four), 2)
        row, column = halves(r, n)
        number = r.number_of("h2*a", row) if slot else r.number_of("w2*b", column)
        rate = r.call("exp", r.number_of("d", i) / r.size("d") * base * -1)
        turn = number * rate
        a = raw(n, g, r.flat(i, r.row(2 * slot)))
        b = raw(n, g, r.flat(i, r.row(2 * slot + 1)))
        c, s = r.call("cos", turn), r.call("sin", turn)
        return a * s + b * c if half else a * c - b * s

    return entry


def attended(r: Reading, y: Entries) -> Entries:
    """Full attention among all patches, head by head."""
    W, wo = (
        r.input("wqkv.weight", f"3*G*d*4, {WIDTH}"),
        r.input("wo.weight", f"{WIDTH}, G*d*4"),
    )

    def raw(part: int) -> Entries:
        def entry(n: Any, g: Any, channel: Any) -> Any:
            at = r.flat(r.row(part), g, *r.factors(channel))
            return r.total(WIDTH, lambda e: W(at, e) * y(n, e))

        return entry

    shape = f"1, {PATCHES}, G, d*4"
    q = r.let("q", shape, turned(r, raw(0)))
    k = r.let("k", shape, turned(r, raw(1)))
    values = raw(2)
    v = r.let("v", shape, lambda one, n, g, channel: values(n, g, channel))
    one, root = r.row(0), r.call("sqrt", r.size("d*4"))

    def mixture(_: Any, g: Any, n: Any, m: Any) -> Any:
        def score(m: Any) -> Any:
            dot = r.total("d*4", lambda c: q(one, n, g, c) * k(one, m, g, c))
            return dot / root

        return softmax(r, score, PATCHES)(m)

    p = r.let("p", f"1, G, {PATCHES}, {PATCHES}", mixture)

    def entry(_: Any, n: Any, e: Any) -> Any:
        def head(g: Any, c: Any) -> Any:
            mixed = r.total(PATCHES, lambda m: p(one, g, n, m) * v(one, m, g, c))
            return wo(e, r.flat(g, *r.factors(c))) * mixed

        return r.total("G", lambda g: r.total("d*4", lambda c: head(g, c)))

    out = r.let("attended", f"1, {PATCHES}, {WIDTH}", entry)
    return lambda n, e: out(one, n, e)


def blocked(r: Reading, x: Entries) -> Entries:
    """One pre-norm block."""
    seen = attended(r, normed(r, x, "norm0"))

    def middle(n: Any, e: Any) -> Any:
        return x(n, e) + seen(n, e)

    y = normed(r, middle, "norm1")
    fc0 = r.input("mlp.fc0.weight", f"Fv, {WIDTH}")
    fc1 = r.input("mlp.fc1.weight", f"{WIDTH}, Fv")

    def entry(n: Any, e: Any) -> Any:
        inner = linear(r, fc0, lambda i: y(n, i), WIDTH)
        hidden = lambda f: r.call("gelu_tanh", inner(f))  # noqa: E731
        return middle(n, e) + linear(r, fc1, hidden, "Fv")(e)

    out: Entries = r.let("block_out", f"{PATCHES}, {WIDTH}", entry)
    return out


def block(r: Reading) -> Outputs:
    """One pre-norm block on its own."""
    shape = f"{PATCHES}, {WIDTH}"
    return {"x": (shape, blocked(r, r.input("x", shape)))}


def projected(r: Reading, merged: Entries) -> Outputs:
    """RMSNorm(W_2 gelu(W_0 x)) of each row."""
    first = r.input("proj.0.weight", f"{WIDE}, {WIDE}")
    second = r.input("proj.2.weight", f"D, {WIDE}")
    weight = r.input("post_norm.weight", "D")

    def entry(m: Any, o: Any) -> Any:
        inner = linear(r, first, lambda i: merged(m, i), WIDE)
        y = linear(r, second, lambda i: r.call("gelu_erf", inner(i)), WIDE)
        return rms(r, y, "D")(o) * weight(o)

    return {"features": ("h2*w2, D", entry)}


def merged_rows(r: Reading, mean: Entries) -> Entries:
    """Each a x b neighbourhood side by side; mean(row, column, channel)."""

    def entry(m: Any, wide: Any) -> Any:
        (h, w), (a, b, e) = r.factors(m), r.factors(wide)
        return mean(r.flat(h, a), r.flat(w, b), e)

    out: Entries = r.let("merged", f"h2*w2, {WIDE}", entry)
    return out


def project(r: Reading) -> Outputs:
    """Merge over t frames, then project."""
    x = r.input("x", f"t*{PATCHES}, {WIDTH}")

    def mean(row: Any, column: Any, e: Any) -> Any:
        def frame(t: Any) -> Any:
            return x(r.flat(t, *r.factors(row), *r.factors(column)), e)

        return r.total("t", frame) / r.size("t")

    return projected(r, merged_rows(r, mean))


def encoder(r: Reading, blocks: int = 2) -> Outputs:
    """The whole encoder of one image."""
    tower = Within(
        r, "vision_tower.", {"patches": r.input("patches", f"{PATCHES}, c, x, y")}
    )
    shape, entries = embed(tower)["x"]
    x = r.let("embedded", shape, entries)
    for n in range(blocks):
        x = blocked(Within(tower, f"encoder.blocks.{n}.", {}), x)
    last = normed(tower, x, "encoder.final_layernorm")

    def mean(row: Any, column: Any, e: Any) -> Any:
        return last(r.flat(*r.factors(row), *r.factors(column)), e)

    return projected(Within(r, "mm_projector.", {}), merged_rows(r, mean))
