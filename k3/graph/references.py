"""What each packed step must equal: the equations of `k3.spec` on the same inputs.

A reference takes the inputs by name and the sizes, and returns outputs by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from k3.config import K3Config, TextConfig
from k3.config.published import published
from k3.graph.dims import Sizes
from k3.graph.inputs import RELEASED, Numbers
from k3.graph.steps import KIMI_LINEAR, SMALL
from k3.spec import (
    attn_res,
    draft,
    kda,
    kda_layer,
    mla,
    model,
    moe,
    ops,
    situ,
    vision,
)
from k3.spec.attn_res import BlockState
from k3.spec.weights import under

Array = Any
Env = Mapping[str, Array]
Outputs = dict[str, Array]
Reference = Callable[[Env, Sizes], Outputs]


@cache
def released() -> TextConfig:
    """The published configuration, whose numbers the steps keep by default."""
    return K3Config.from_dict(published()).text


def config(sizes: Sizes, block: int = SMALL.block) -> TextConfig:
    """The published configuration with the heads and experts of these sizes."""
    base, heads = released(), sizes.get("M", 1)
    linear = replace(base.linear_attn_config, num_heads=sizes.get("H", 1))
    return replace(
        base,
        linear_attn_config=linear,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        num_experts_per_token=sizes.get("A", 1),
        attn_res_block_size=block,
    )


def unstack(env: Env) -> dict[str, Array]:
    """Stacked experts [E, F, L] under their own names, as the checkpoint has them."""
    out: dict[str, Array] = {}
    for name, value in env.items():
        before, stacked, after = name.rpartition("experts.w")
        if stacked:
            for e in range(len(value)):
                out[f"{before}experts.{e}.w{after}"] = value[e]
        else:
            out[name] = value
    return out


def expert(env: Env, sizes: Sizes) -> Outputs:
    """spec.situ.mlp."""
    return {"y": situ.mlp(env, env["x"])}


def kda_update(env: Env, sizes: Sizes) -> Outputs:
    """spec.kda.step, head by head."""
    stepped = [
        kda.step(
            *(env[n][h] for n in "Sqkv"), alpha=env["alpha"][h], beta=env["beta"][h]
        )
        for h in range(sizes["H"])
    ]
    after, out = zip(*stepped, strict=True)
    return {"S": ops.stack(after), "o": ops.stack(out)}


def kda_step(env: Env, sizes: Sizes, numbers: Numbers = RELEASED) -> Outputs:
    """spec.kda_layer.step."""
    S, window, y = kda_layer.step(
        env,
        env["S"],
        env["window"],
        env["x"],
        heads=sizes["H"],
        floor=numbers.floor,
    )
    return {"S": S, "window": window, "y": y}


def mla_step(env: Env, sizes: Sizes) -> Outputs:
    """spec.mla.packed_step, expanded: the absorbed graph is the same function."""
    outputs = mla.packed_step(
        env, env["latents"], env["shared"], env["x"], heads=sizes["M"]
    )
    return dict(zip(("latents", "shared", "y"), outputs, strict=True))


def retrieve(env: Env, sizes: Sizes) -> Outputs:
    """spec.attn_res.retrieve."""
    return {"h": attn_res.retrieve(env["q"], env["values"])}


def depth_step(env: Env, sizes: Sizes) -> Outputs:
    """spec.attn_res: retrieve, add twice, finish the block."""
    state = depth(env)
    q = attn_res.query(env, "self_attention_res")
    h = attn_res.retrieve(q, attn_res.sources(state))
    state = attn_res.add(attn_res.add(state, env["token_out"]), env["channel_out"])
    return {"h": h, "rows": attn_res.sources(attn_res.finish_layer(state, 1))}


def depth(env: Env) -> BlockState:
    """The packed depth as the spec's state; the first row is the embedding."""
    rows = env["rows"]
    return BlockState(rows[0], tuple(rows[1:]), env.get("partial"), 0)


def moe_layer(env: Env, sizes: Sizes) -> Outputs:
    """spec.moe.layer."""
    return {"y": moe.layer(unstack(env), env["x"], sizes["A"])}


def state(env: Env, prefix: str = "") -> Any:
    """A layer's packed state as the spec's: a Memory, or a list of rows."""
    if f"{prefix}S" in env:
        return model.Memory(env[f"{prefix}S"], env[f"{prefix}window"])
    pairs = zip(env[f"{prefix}latents"], env[f"{prefix}shared"], strict=True)
    return [mla.Row(*pair) for pair in pairs]


def packed(after: Any, prefix: str = "") -> Outputs:
    """The spec's state as packed arrays."""
    if isinstance(after, model.Memory):
        return {f"{prefix}S": after.S, f"{prefix}window": after.window}
    latents, shared = mla.pack(after)
    return {f"{prefix}latents": latents, f"{prefix}shared": shared}


def layer(env: Env, sizes: Sizes) -> Outputs:
    """spec.model.layer_step, no block completed."""
    numbers = config(sizes)
    after, memory = model.layer_step(unstack(env), numbers, depth(env), state(env))
    return {**packed(memory), "partial": after.partial}


def decoder(env: Env, sizes: Sizes, embedding: Array) -> Outputs:
    """spec.model.step on the small schedule, and the hidden value before the head."""
    weights, numbers = unstack(env), config(sizes)
    states = [state(env, f"layers.{i}.") for i in range(len(SMALL.cases))]
    after, logits = model.step(weights, numbers, states, embedding)
    seen = attn_res.start(embedding)
    for i, memory in enumerate(states):
        own = under(weights, f"model.layers.{i}.")
        seen, _ = model.layer_step(own, numbers, seen, memory)
    out = {"hidden": model.final_hidden(weights, numbers, seen), "logits": logits}
    for i, memory in enumerate(after):
        out.update(packed(memory, f"layers.{i}."))
    return out


def decoder_token(env: Env, sizes: Sizes) -> Outputs:
    """The decoder on a row of the table."""
    return decoder(env, sizes, env["model.embed_tokens.weight"][int(env["id"])])


def decoder_token_image(env: Env, sizes: Sizes) -> Outputs:
    """The decoder on a row of the table, or on the next feature row."""
    table, seen = env["model.embed_tokens.weight"], int(env["seen"])
    ids, placeholder = [int(env["id"])], int(env["placeholder"])
    used = seen + ids.count(placeholder)
    (embedding,) = model.embed(table, ids, env["features"][seen:used], placeholder)
    return {**decoder(env, sizes, embedding), "seen": used}


def splice(env: Env, sizes: Sizes) -> Outputs:
    """spec.model.embed of a sequence."""
    ids, placeholder = [int(i) for i in env["ids"]], int(env["placeholder"])
    features = env["features"][: ids.count(placeholder)]
    table = env["model.embed_tokens.weight"]
    return {"embeddings": ops.stack(model.embed(table, ids, features, placeholder))}


def grid(sizes: Sizes) -> vision.Grid:
    """Frames, rows and columns at these sizes: one frame, or t + 2 in a clip."""
    frames = sizes["t"] + 2 if "t" in sizes else 1
    return frames, sizes["h2"] * sizes["a"], sizes["w2"] * sizes["b"]


def vision_embed(env: Env, sizes: Sizes) -> Outputs:
    """spec.vision.embed."""
    return {"x": vision.embed(env, env["patches"], grid(sizes))}


def vision_block(env: Env, sizes: Sizes, attention: Any = "joint") -> Outputs:
    """spec.vision.block."""
    shape = grid(sizes)
    return {
        "x": vision.block(env, env["x"], shape, heads=sizes["G"], attention=attention)
    }


def vision_project(env: Env, sizes: Sizes) -> Outputs:
    """spec.vision.merge, then project."""
    shape = sizes["t"], *grid(sizes)[1:]
    merged = vision.merge(env["x"], shape, (sizes["a"], sizes["b"]))
    return {"features": vision.project(env, merged)}


def vision_encoder(env: Env, sizes: Sizes) -> Outputs:
    """spec.vision: embed, two blocks, final norm, merge with the kernel, project."""
    shape = grid(sizes)
    tower = under(env, "vision_tower.")
    x = vision.encode(tower, env["patches"], shape, heads=sizes["G"], blocks=2)
    merged = vision.merge(x, shape, (sizes["a"], sizes["b"]))
    return {"features": vision.project(under(env, "mm_projector."), merged)}


def draft_step(env: Env, sizes: Sizes) -> Outputs:
    """spec.draft fused and mixed in, then one layer of spec.model and its head."""
    weights, numbers = unstack(env), config(sizes, block=1)
    triple = ops.concat([env[n] for n in ("low", "mid", "high")])
    feature = draft.fuse(env["fusion"], triple)
    x = draft.token_input(
        env["token_weight"], env["feature_weight"], env["embedding"], feature
    )
    own = under(weights, "layer.")
    after, memory = model.layer_step(own, numbers, attn_res.start(x), state(env))
    return {
        "feature": feature,
        **packed(memory),
        "hidden": model.final_hidden(weights, numbers, after),
        "logits": model.finish(weights, numbers, after),
    }


references: dict[str, Reference] = {
    "expert": expert,
    "kda_update": kda_update,
    "kda_layer": kda_step,
    "kda_layer_kimi_linear": partial(kda_step, numbers=KIMI_LINEAR),
    "mla_step": mla_step,
    "mla_step_absorbed": mla_step,
    "attn_res": retrieve,
    "attn_res_depth": depth_step,
    "moe": moe_layer,
    **{f"layer_{m}_{c}": layer for m, c in SMALL.cases},
    "layer_first_of_block": layer,
    "decoder_token": decoder_token,
    "decoder_token_image": decoder_token_image,
    "splice": splice,
    "vision_embed": vision_embed,
    "vision_embed_clip": vision_embed,
    "vision_block": vision_block,
    "vision_block_divided": partial(vision_block, attention="divided"),
    "vision_project": vision_project,
    "vision_encoder": vision_encoder,
    "vision_encoder_clip": vision_encoder,
    "draft": draft_step,
}
