"""MoonViT-V2 as a graph on a symbolic grid: embed, block, encoder, merge and project.

Patches of the frames (1, or t+2 in a clip), h2*a rows and w2*b columns lie on one
axis; a and b are the merge kernel. G heads of d*4 channels: rate, column or row, pair.
"""

from typing import Literal

from k3.graph import primitives as p
from k3.graph.dims import Dim, plus, times
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.term import Term, constant, let, spread

Attention = Literal["joint", "divided"]

ROWS: Dim = times("h2", "a")
COLUMNS: Dim = times("w2", "b")
PLACES: Dim = times(ROWS, COLUMNS)
# [sin | cos] of the time embedding are the halves of the tower's width.
WIDTH = "e+e"
# A clip has at least two frames: a single one gets no time embedding.
CLIP: Dim = plus("t", 2)
HEAD: Dim = times("d", 4)


def power(base: int, exponent: Term) -> Term:
    """base^exponent, entry by entry."""
    rate = p.log(constant(base))
    return p.exp(exponent * spread(rate, exponent.shape))


def time(width: Dim, frames: Dim) -> Term:
    """Time embedding [t, e+e]: [sin | cos] of frame * 10000^(-i/e)."""
    steps = p.positions(width) / spread(p.size(width), (width,))
    angles = p.outer(p.positions(frames), power(10000, -steps))
    return let("time", p.concat(p.sin(angles), p.cos(angles), axis=1))


def position(table: Term, frames: Dim) -> Term:
    """The stretched table, and the time embedding if there are frames. [N, e+e]."""
    height, width, channels = table.shape
    down, across = p.bilinear(ROWS, height), p.bilinear(COLUMNS, width)
    places = let("places", p.contract("rh,cw,hwe->rce", down, across, table))
    if frames == 1:
        return p.reshape(places, PLACES, channels)
    shape = (frames, ROWS, COLUMNS, channels)
    both = spread(places, shape, 1, 2, 3) + spread(time("e", frames), shape, 0, 3)
    return p.reshape(both, times(frames, PLACES), channels)


def embed(weights: Inputs, patches: Term, frames: Dim = 1) -> Term:
    """The patch times its kernel, plus its position. [N, c*x*y] to [N, e+e]."""
    kernel = weights.real("patch_embed.proj.weight", f"{WIDTH}, c, x, y")
    flat = p.reshape(kernel, kernel.shape[0], times(*kernel.shape[1:]))
    table = weights.real("patch_embed.pos_emb.weight", f"Hp, Wp, {WIDTH}")
    pixels = p.reshape(patches, times(frames, PLACES), flat.shape[1])
    return let("embedded", p.linear(flat, pixels) + position(table, frames))


def angles() -> Term:
    """Angles [h*w, d, 2]: slot 0 turns by the column, slot 1 by the row, 1e4^(-i/d)."""
    steps = p.positions("d") / spread(p.size("d"), ("d",))
    rates = power(10000, -steps)
    shape = (ROWS, COLUMNS, "d")
    across = spread(p.outer(p.positions(COLUMNS), rates), shape, 1, 2)
    down = spread(p.outer(p.positions(ROWS), rates), shape, 0, 2)
    both = p.stack(across, down, axis=3)
    return let("angles", p.reshape(both, PLACES, "d", 2))


def rotate(x: Term, turn: Term) -> Term:
    """Adjacent channels (a, b) by an angle. x [B, N, G, d*4], turn [N, d, 2]."""
    batch, count, heads, _ = x.shape
    pairs = p.reshape(x, batch, count, heads, "d", 2, 2)
    a, b = p.pick(pairs, 0, axis=5), p.pick(pairs, 1, axis=5)
    turn = spread(turn, a.shape, 1, 3, 4)
    c, s = p.cos(turn), p.sin(turn)
    both = p.stack(a * c - b * s, a * s + b * c, axis=5)
    return p.reshape(both, *x.shape)


def attend(wqkv: Term, wo: Term, x: Term, turn: Term | None) -> Term:
    """Full attention among the N rows of each of B groups. x [B, N, e+e]."""
    batch, count, _ = x.shape
    qkv = p.reshape(p.linear(wqkv, x), batch, count, 3, "G", HEAD)
    q, k, v = (let(f"{n}_raw", p.pick(qkv, i, axis=2)) for i, n in enumerate("qkv"))
    if turn is not None:
        q, k = let("q", rotate(q, turn)), let("k", rotate(k, turn))
    scores = p.contract("bngc,bmgc->bgnm", q, k)
    weights = p.softmax(scores / spread(p.sqrt(p.size(HEAD)), scores.shape))
    out = p.contract("bgnm,bmgc->bngc", let("p", weights), let("v", v))
    return let("attended", p.linear(wo, p.reshape(out, batch, count, times("G", HEAD))))


def feed_forward(weights: Inputs, x: Term) -> Term:
    """fc1(gelu_tanh(fc0 x)). [N, e+e]."""
    inner = p.linear(weights.real("mlp.fc0.weight", f"Fv, {WIDTH}"), x)
    return p.linear(
        weights.real("mlp.fc1.weight", f"{WIDTH}, Fv"), p.gelu(inner, "tanh")
    )


def block(
    weights: Inputs,
    x: Term,
    numbers: Numbers = RELEASED,
    *,
    frames: Dim = 1,
    attention: Attention = "joint",
) -> Term:
    """One pre-norm block, [N, e+e]; divided attention is the paper's."""
    eps, channels = numbers.vision_eps, x.shape[1]
    y = p.rms_norm(x, weights.real("norm0.weight", WIDTH), eps)
    wqkv = weights.real("wqkv.weight", f"3*G*d*4, {WIDTH}")
    wo = weights.real("wo.weight", f"{WIDTH}, G*d*4")
    if attention == "joint":
        turn = spread(angles(), (frames, PLACES, "d", 2), 1, 2, 3)
        turn = p.reshape(turn, x.shape[0], "d", 2)
        seen = attend(wqkv, wo, p.reshape(y, 1, *x.shape), turn)
        x = x + p.reshape(seen, *x.shape)
    else:
        seen = attend(wqkv, wo, p.reshape(y, frames, PLACES, channels), angles())
        x = temporal(weights, x + p.reshape(seen, *x.shape), frames, numbers)
    y = p.rms_norm(x, weights.real("norm1.weight", WIDTH), eps)
    return let("block_out", x + feed_forward(weights, y))


def temporal(
    weights: Inputs, x: Term, frames: Dim, numbers: Numbers = RELEASED
) -> Term:
    """The second pass of divided attention, over the frames of each place."""
    y = p.rms_norm(x, weights.real("norm_time.weight", WIDTH), numbers.vision_eps)
    wqkv = weights.real("wqkv_time.weight", f"3*G*d*4, {WIDTH}")
    wo = weights.real("wo_time.weight", f"{WIDTH}, G*d*4")
    turned = p.permute(p.reshape(y, frames, PLACES, x.shape[1]), 1, 0, 2)
    seen = p.permute(attend(wqkv, wo, turned, None), 1, 0, 2)
    return x + p.reshape(seen, *x.shape)


def merge(x: Term, frames: Dim = 1) -> Term:
    """Mean over frames, then each a x b neighbourhood side by side. [h2*w2, a*b*(e+e)].

    A reshape without the axis exchange does not type.
    """
    channels = x.shape[1]
    grid = p.reshape(x, frames, "h2", "a", "w2", "b", channels)
    near = p.permute(p.mean(grid, 0), 0, 2, 1, 3, 4)
    return let("merged", p.reshape(near, times("h2", "w2"), times("a", "b", channels)))


def project(weights: Inputs, x: Term, numbers: Numbers = RELEASED) -> Term:
    """RMSNorm(W_2 gelu(W_0 x)): rows for the text. [h2*w2, D]."""
    wide = f"a*b*({WIDTH})"
    inner = p.linear(weights.real("proj.0.weight", f"{wide}, {wide}"), x)
    y = p.linear(weights.real("proj.2.weight", f"D, {wide}"), p.gelu(inner, "erf"))
    return p.rms_norm(y, weights.real("post_norm.weight", "D"), numbers.eps)


def features(
    weights: Inputs,
    patches: Term,
    blocks: int,
    numbers: Numbers = RELEASED,
    *,
    frames: Dim = 1,
    attention: Attention = "joint",
) -> Term:
    """The whole encoder: embed, blocks, final RMSNorm, merge and project."""
    tower = weights.under("vision_tower.")
    x = embed(tower, patches, frames)
    for b in range(blocks):
        own = tower.under(f"encoder.blocks.{b}.")
        x = block(own, x, numbers, frames=frames, attention=attention)
    scale = tower.real("encoder.final_layernorm.weight", WIDTH)
    x = p.rms_norm(x, scale, numbers.vision_eps)
    return project(weights.under("mm_projector."), merge(x, frames), numbers)
