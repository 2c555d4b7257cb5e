"""The packed steps by name: what `k3 graph NAME` shows and runs."""

from collections.abc import Callable
from functools import partial

from k3.graph import attn_res, draft, kda, mla, model, moe, situ, splice, vision
from k3.graph.attn_res import Depth
from k3.graph.dims import Dim, show, times
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.model import Case, Schedule
from k3.graph.term import Block, Term

Outputs = dict[str, Term]

# A decoder small enough to look at: every layer case, and two blocks of two layers.
SMALL = Schedule(
    (("kda", "dense"), ("kda", "sparse"), ("mla", "dense"), ("mla", "sparse")), 2
)
KIMI_LINEAR = Numbers(floor=None, full_rank_gate=False)
ABSORBED = Numbers(absorb=True)


def expert() -> Outputs:
    """Eq. 12: W_down SiTU(W_gate x, W_up x)."""
    inputs = Inputs()
    return {"y": situ.mlp(inputs, inputs.real("x", "D"))}


def kda_update() -> Outputs:
    """Eq. 1 for all heads: the memory after one token, and what the query reads."""
    inputs = Inputs()
    S, q = inputs.real("S", "H, K, V"), inputs.real("q", "H, K")
    k = inputs.real("k", "H, K")
    v, alpha = inputs.real("v", "H, V"), inputs.real("alpha", "H, K")
    after = kda.update(S, k, v, alpha, inputs.real("beta", "H"))
    return {"S": after, "o": kda.read(after, q)}


def kda_layer(numbers: Numbers = RELEASED) -> Outputs:
    """Eq. 1, 2, 5, 6: one token through a KDA layer on its memory and window."""
    inputs = Inputs()
    S, window = model.state(inputs, "kda")
    after, rolled, y = kda.step(inputs, S, window, inputs.real("x", "D"), numbers)
    return {"S": after, "window": rolled, "y": y}


def mla_step(numbers: Numbers = RELEASED) -> Outputs:
    """Eq. 7: one token through gated MLA on its packed cache."""
    inputs = Inputs()
    past = model.state(inputs, "mla")
    latents, shared, y = mla.step(inputs, *past, inputs.real("x", "D"), numbers)
    return {"latents": latents, "shared": shared, "y": y}


def retrieve() -> Outputs:
    """Eq. 8-9: one depth mix over N sources."""
    inputs = Inputs()
    return {
        "h": attn_res.retrieve(inputs.real("q", "D"), inputs.real("values", "N, D"))
    }


def depth_step() -> Outputs:
    """Eq. 10: the packed depth after a layer's two outputs, its block completed."""
    inputs = Inputs()
    depth = Depth(inputs.real("rows", "N, D"), inputs.real("partial", "D"))
    h = attn_res.mix(inputs, "self_attention_res", depth)
    depth = attn_res.add(
        attn_res.add(depth, inputs.real("token_out", "D")),
        inputs.real("channel_out", "D"),
    )
    after = attn_res.finish_layer(depth, 1)
    return {"h": h, "rows": after.rows}


def moe_layer() -> Outputs:
    """Eq. 11 and 13: the sparse layer of one token, routed by its own top-k."""
    inputs = Inputs()
    return {"y": moe.layer(inputs, inputs.real("x", "D"))}


def layer(case: Case, partial_sum: bool = True) -> Outputs:
    """One decoder layer on packed state and depth: both sublayers."""
    inputs = Inputs()
    partial_row = inputs.real("partial", "D") if partial_sum else None
    depth = Depth(inputs.real("rows", "N, D"), partial_row)
    before = model.state(inputs, case[0])
    depth, after = model.layer_step(inputs, case, depth, before, RELEASED)
    assert depth.partial is not None
    names = model.STATES[case[0]]
    return {**dict(zip(names, after, strict=True)), "partial": depth.partial}


def decoder_token(plan: Schedule = SMALL, numbers: Numbers = RELEASED) -> Outputs:
    """One text token from its id to its logits."""
    inputs = Inputs()
    return model.token(inputs, plan, splice.text(inputs), numbers)


def decoder_token_image(plan: Schedule = SMALL) -> Outputs:
    """One token, text or image, from its id to its logits: the splice is a node."""
    inputs = Inputs()
    embedding, seen = splice.token(inputs)
    return {**model.token(inputs, plan, embedding), "seen": seen}


def splice_sequence() -> Outputs:
    """Image rows in order where the placeholder stands, table rows elsewhere."""
    return {"embeddings": splice.sequence(Inputs())}


def vision_embed(frames: Dim = 1) -> Outputs:
    """Patch embedding with its stretched position, and its time in a clip."""
    inputs = Inputs()
    return {"x": vision.embed(inputs, _patches(inputs, frames), frames)}


def vision_block(frames: Dim = 1, attention: vision.Attention = "joint") -> Outputs:
    """One pre-norm block of the tower."""
    inputs = Inputs()
    x = inputs.real("x", f"{_tokens(frames)}, {vision.WIDTH}")
    return {"x": vision.block(inputs, x, frames=frames, attention=attention)}


def vision_project() -> Outputs:
    """Merge neighbourhoods over all frames, then project to the text's width."""
    inputs = Inputs()
    x = inputs.real("x", f"{_tokens('t')}, {vision.WIDTH}")
    return {"features": vision.project(inputs, vision.merge(x, "t"))}


def vision_encoder(
    frames: Dim = 1, blocks: int = 2, attention: vision.Attention = "joint"
) -> Outputs:
    """The whole encoder, from patches to rows in the text."""
    inputs = Inputs()
    patches = _patches(inputs, frames)
    out = vision.features(inputs, patches, blocks, frames=frames, attention=attention)
    return {"features": out}


def draft_step(case: Case = ("mla", "dense")) -> Outputs:
    """EAGLE-3: fuse three block outputs, then one draft step."""
    inputs = Inputs()
    low, mid, high = (inputs.real(n, "D") for n in ("low", "mid", "high"))
    feature = draft.fuse(inputs, low, mid, high)
    embedding = inputs.real("embedding", "D")
    return {"feature": feature, **draft.step(inputs, case, embedding, feature)}


def _patches(inputs: Inputs, frames: Dim) -> Term:
    return inputs.real("patches", f"{_tokens(frames)}, c, x, y")


def _tokens(frames: Dim) -> str:
    return show(times(frames, vision.PLACES))


_BUILDERS: dict[str, Callable[[], Outputs]] = {
    "expert": expert,
    "kda_update": kda_update,
    "kda_layer": kda_layer,
    "kda_layer_kimi_linear": partial(kda_layer, KIMI_LINEAR),
    "mla_step": mla_step,
    "mla_step_absorbed": partial(mla_step, ABSORBED),
    "attn_res": retrieve,
    "attn_res_depth": depth_step,
    "moe": moe_layer,
    **{f"layer_{m}_{c}": partial(layer, (m, c)) for m, c in SMALL.cases},
    "layer_first_of_block": partial(layer, ("kda", "dense"), False),
    "decoder_token": decoder_token,
    "decoder_token_image": decoder_token_image,
    "splice": splice_sequence,
    "vision_embed": vision_embed,
    "vision_embed_clip": partial(vision_embed, vision.CLIP),
    "vision_block": vision_block,
    "vision_block_divided": partial(vision_block, vision.CLIP, "divided"),
    "vision_project": vision_project,
    "vision_encoder": vision_encoder,
    "vision_encoder_clip": partial(vision_encoder, vision.CLIP),
    "draft": draft_step,
}


def _block(name: str, builder: Callable[[], Outputs]) -> Block:
    function = builder.func if isinstance(builder, partial) else builder
    return Block(name, (function.__doc__ or "").splitlines()[0], builder())


catalogue: dict[str, Callable[[], Block]] = {
    name: partial(_block, name, builder) for name, builder in _BUILDERS.items()
}
