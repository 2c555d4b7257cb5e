"""The graphs on the released program's numbers: 14 layers, and the vision tower."""

import numpy as np
from readings import released, text14

import k3.graph as graph
from k3.graph import model, splice, steps, vision
from k3.graph.inputs import Inputs, Numbers
from k3.graph.term import Block

TOKENS = 8


def stacked(weights, text):
    """Experts as the graph reads them: one array of all."""
    out = {n: x for n, x in weights.items() if ".experts." not in n}
    for i in text.moe_layers:
        name = f"model.layers.{i}.block_sparse_moe.experts"
        for w in ("w1", "w2", "w3"):
            each = [weights[f"{name}.{e}.{w}.weight"] for e in range(text.num_experts)]
            out[f"{name}.{w}.weight"] = np.stack(each)
    return out


def empty(block):
    """Zero states, of no past tokens."""
    return {n: node for n, node in block.inputs.items() if n.startswith("layers.")}


def test_fourteen_layers_token_by_token():
    golden, text = text14.golden(), text14.config().text
    inputs = Inputs()
    outputs = model.token(
        inputs, model.schedule(text), splice.text(inputs), Numbers.of(text)
    )
    block = Block("text14", "", outputs)
    env = stacked(text14.weights(), text)
    linear = text.linear_attn_config
    zero = {
        "S": (linear.num_heads, linear.head_dim, linear.v_dim),
        "window": (linear.short_conv_kernel_size, text.hidden_size),
        "latents": (0, text.kv_lora_rank),
        "shared": (0, text.qk_rope_head_dim),
    }
    state = {n: np.zeros(zero[n.split(".")[-1]]) for n in empty(block)}
    for t in range(TOKENS):
        token = {"id": np.array(golden["ids"][t])}
        after = graph.evaluate(block, {**env, **state, **token}, model.sizes(text))
        wanted = golden["logits_full"][t]
        assert abs(after["logits"] - wanted).max() < 5e-6 * abs(wanted).max(), t
        state = {n: after[n] for n in state}
    assert state["layers.3.latents"].shape[0] == TOKENS


def test_the_whole_encoder():
    golden, config = released.golden(), released.config().vision
    weights, used = released.weights(), 0
    for n, (t, h, w) in enumerate(golden["grids"].tolist()):
        patches = golden["pixel_values"][used : used + t * h * w].astype(float)
        used += t * h * w
        frames = vision.CLIP if t > 1 else 1
        outputs = steps.vision_encoder(frames, config.vt_num_hidden_layers)
        block = Block("encoder", "", outputs)
        a, b = config.merge_kernel_size
        sizes = {"a": a, "b": b, "h2": h // a, "w2": w // b}
        sizes |= {"G": config.vt_num_attention_heads} | ({"t": t - 2} if t > 1 else {})
        env = {**weights, "patches": patches}
        got = graph.evaluate(block, env, sizes)["features"]
        wanted = golden[f"proj_{n}"]
        assert abs(got - wanted).max() < 2e-6 * abs(wanted).max(), (t, h, w)
    assert n == 2


def test_the_schedule_of_the_published_configuration():
    from k3 import recipes

    plan = model.schedule(recipes.released().text)
    assert len(plan.cases) == 93
    assert plan.block == 12
    assert plan.cases[0] == ("kda", "dense")
    assert [i for i, (mixer, _) in enumerate(plan.cases) if mixer == "mla"] == [
        *range(3, 93, 4),
        92,
    ]
