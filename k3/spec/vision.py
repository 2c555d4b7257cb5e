"""MoonViT-V2 (release notes §3): patches of one image or short clip to text features.

A grid is (t frames, h rows, w columns); patches come in raster order (t, row, column).
`weights` has the checkpoint's names under vision_tower and mm_projector.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from k3.spec import norm, ops
from k3.spec import vision_position as position
from k3.spec.ops import Array, Number
from k3.spec.weights import under

Grid = tuple[int, int, int]
Attention = Literal["joint", "divided"]

# The tower's norms have no eps of their own: the step of the dtype, here of fp32.
EPS = Fraction(1, 2**23)


def gelu_tanh(x: Array) -> Array:
    """GELU by tanh, the tower's: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    inner = x + ops.lift(x, Fraction("0.044715")) * x * x * x
    return x / 2 * (1 + ops.tanh(ops.sqrt(2 / ops.pi(x)) * inner))


def gelu(x: Array) -> Array:
    """GELU, the projector's: x/2 (1 + erf(x / sqrt 2))."""
    return x / 2 * (1 + ops.erf(x / ops.sqrt(ops.lift(x, 2))))


def embed(weights: Mapping[str, Array], patches: Array, grid: Grid) -> Array:
    """Patch embedding: the patch times its kernel, plus its position. [N D].

    patches [N 3 P P]; no bias. A time embedding is added to clips of several frames.
    """
    kernel = weights["patch_embed.proj.weight"]
    flat = ops.reshape(patches, len(patches), -1)
    x = flat @ ops.transpose(ops.reshape(kernel, len(kernel), -1))
    return x + position.embedding(weights["patch_embed.pos_emb.weight"], grid)


def attend(wqkv: Array, wo: Array, x: Array, heads: int, angles: Array | None) -> Array:
    """Full attention among the rows of x [N D], none masked. Returns [N D].

    wqkv [3*heads*d D], wo [D heads*d]; angles [N d/2] turn queries and keys.
    """
    count = len(x)
    qkv = ops.reshape(x @ ops.transpose(wqkv), count, 3, heads, -1)
    outputs = []
    for head in range(heads):
        q, k, v = (qkv[:, part, head] for part in range(3))
        if angles is not None:
            q, k = position.rotate(q, angles), position.rotate(k, angles)
        scores = q @ ops.transpose(k) / ops.sqrt(ops.lift(x, q.shape[1]))
        outputs.append(ops.softmax(scores) @ v)
    return ops.concat(outputs, axis=1) @ ops.transpose(wo)


def feed_forward(weights: Mapping[str, Array], x: Array) -> Array:
    """fc1(gelu_tanh(fc0 x)), without bias. [N D] to [N D]."""
    inner = gelu_tanh(x @ ops.transpose(weights["mlp.fc0.weight"]))
    return inner @ ops.transpose(weights["mlp.fc1.weight"])


def block(
    weights: Mapping[str, Array],
    x: Array,
    grid: Grid,
    *,
    heads: int,
    attention: Attention = "joint",
    eps: Number = EPS,
) -> Array:
    """One pre-norm block, [N D] to [N D].

    "joint", the release: attention over all t h w patches of the item. "divided", the
    paper and the article: over the patches of each frame, then, with weights of its
    own and no rotation, over the frames of each place.
    """
    y = norm.rms_norm(x, weights["norm0.weight"], eps)
    wqkv, wo = weights["wqkv.weight"], weights["wo.weight"]
    angles = position.angles(x, grid, len(wqkv) // (3 * heads))
    if attention == "joint":
        x = x + attend(wqkv, wo, y, heads, angles)
    else:
        place = grid[1] * grid[2]
        frames = [slice(f * place, (f + 1) * place) for f in range(grid[0])]
        seen = [attend(wqkv, wo, y[f], heads, angles[f]) for f in frames]
        x = temporal(weights, x + ops.concat(seen), grid, heads=heads, eps=eps)
    return x + feed_forward(weights, norm.rms_norm(x, weights["norm1.weight"], eps))


def temporal(
    weights: Mapping[str, Array], x: Array, grid: Grid, *, heads: int, eps: Number = EPS
) -> Array:
    """The second pass of divided attention, over the frames of each place. [N D]."""
    y = norm.rms_norm(x, weights["norm_time.weight"], eps)
    wqkv, wo = weights["wqkv_time.weight"], weights["wo_time.weight"]
    place = grid[1] * grid[2]
    seen = [attend(wqkv, wo, y[p::place], heads, None) for p in range(place)]
    rows = [seen[p][f] for f in range(grid[0]) for p in range(place)]
    return x + ops.stack(rows)


def encode(
    weights: Mapping[str, Array],
    patches: Array,
    grid: Grid,
    *,
    heads: int,
    blocks: int,
    attention: Attention = "joint",
    eps: Number = EPS,
) -> Array:
    """Embed, run all blocks, final RMSNorm (the article has none). [N D]."""
    x = embed(weights, patches, grid)
    for b in range(blocks):
        own = under(weights, f"encoder.blocks.{b}.")
        x = block(own, x, grid, heads=heads, attention=attention, eps=eps)
    return norm.rms_norm(x, weights["encoder.final_layernorm.weight"], eps)


def merge(x: Array, grid: Grid, kernel: tuple[int, int] = (2, 2)) -> Array:
    """sd2_tpool: mean over frames, then each neighbourhood side by side, row first.

    x [t*h*w D], h and w multiples of the kernel. Returns [h/2*w/2 4*D].
    """
    t, h, w = grid
    flat = ops.total(ops.reshape(x, t, h * w, -1), axis=0) / t
    mh, mw = kernel
    return ops.stack(
        [
            ops.concat(
                [flat[(r + i) * w + c + j] for i in range(mh) for j in range(mw)]
            )
            for r in range(0, h, mh)
            for c in range(0, w, mw)
        ]
    )


def project(weights: Mapping[str, Array], x: Array, eps: Number = norm.EPS) -> Array:
    """The projector: RMSNorm(W_2 gelu(W_0 x)). [M 4*D] to [M text width]."""
    inner = gelu(x @ ops.transpose(weights["proj.0.weight"]))
    y = inner @ ops.transpose(weights["proj.2.weight"])
    return norm.rms_norm(y, weights["post_norm.weight"], eps)


def features(
    weights: Mapping[str, Array],
    patches: Array,
    grid: Grid,
    *,
    heads: int,
    blocks: int,
    attention: Attention = "joint",
    eps: Number = EPS,
) -> Array:
    """One item to its rows in the text: embed, encode, merge, project. [M D]."""
    tower = under(weights, "vision_tower.")
    x = encode(
        tower, patches, grid, heads=heads, blocks=blocks, attention=attention, eps=eps
    )
    return project(under(weights, "mm_projector."), merge(x, grid))
