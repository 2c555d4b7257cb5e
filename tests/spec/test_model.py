from dataclasses import replace

import numpy as np
import pytest
import torch
from readings import released, tensor
from readings.carriers import same

from k3.spec import attn_res, model, mtp, vision
from k3.spec.weights import under


def relative(got, wanted):
    return abs(got - wanted).max() / abs(wanted).max()


@pytest.fixture(scope="module")
def text():
    return released.config().text


def small(text):
    """A decoder of four layers, one of each case, with few weights that matter."""
    layers = replace(
        text.linear_attn_config,
        kda_layers=(1, 3),
        full_attn_layers=(2, 4),
        num_heads=2,
        head_dim=3,
    )
    return replace(
        text,
        num_hidden_layers=4,
        first_k_dense_replace=2,
        attn_res_block_size=3,
        num_experts=4,
        num_experts_per_token=2,
        linear_attn_config=layers,
        hidden_size=6,
        vocab_size=7,
        num_attention_heads=2,
    )


D, H, K, V, R = 6, 2, 3, 3, 2
KDA = {
    **{f"{n}_proj.weight": (H * K, D) for n in "qkv"},
    **{f"{n}_conv1d.weight": (H * K, 1, 3) for n in "qkv"},
    **{"f_a_proj.weight": (R, D), "f_b_proj.weight": (H * K, R)},
    **{"dt_bias": (H * K,), "A_log": (H,), "b_proj.weight": (H, D)},
    **{"g_proj.weight": (H * V, D), "o_norm.weight": (V,)},
    "o_proj.weight": (D, H * V),
}
MLA = {
    **{"q_a_proj.weight": (4, D), "q_a_layernorm.weight": (4,)},
    **{"q_b_proj.weight": (2 * 5, 4), "kv_a_proj_with_mqa.weight": (5, D)},
    **{"kv_a_layernorm.weight": (3,), "kv_b_proj.weight": (2 * 5, 3)},
    **{"g_proj.weight": (4, D), "o_proj.weight": (D, 4)},
}
DENSE = {
    **{f"mlp.{n}_proj.weight": (5, D) for n in ("gate", "up")},
    "mlp.down_proj.weight": (D, 5),
}
SPARSE = {
    **{"gate.weight": (4, D), "gate.e_score_correction_bias": (4,)},
    **{"routed_expert_down_proj.weight": (3, D), "routed_expert_norm.weight": (3,)},
    "routed_expert_up_proj.weight": (D, 3),
    **{f"shared_experts.{n}_proj.weight": (5, D) for n in ("gate", "up")},
    "shared_experts.down_proj.weight": (D, 5),
    **{f"experts.{e}.w{i}.weight": (4, 3) for e in range(4) for i in (1, 3)},
    **{f"experts.{e}.w2.weight": (3, 4) for e in range(4)},
}


def small_weights(rng):
    shapes = {"model.embed_tokens.weight": (7, D), "lm_head.weight": (7, D)}
    shapes["model.norm.weight"] = (D,)
    mixers = ["model.output_attn_res"]
    for i in range(4):
        at = f"model.layers.{i}."
        mixer = KDA if i in (0, 2) else MLA
        shapes |= {f"{at}self_attn.{n}": s for n, s in mixer.items()}
        own = DENSE if i < 2 else {f"block_sparse_moe.{n}": SPARSE[n] for n in SPARSE}
        shapes |= {f"{at}{n}": s for n, s in own.items()}
        norms = ("input_layernorm", "post_attention_layernorm")
        shapes |= {f"{at}{n}.weight": (D,) for n in norms}
        mixers += [f"{at}self_attention_res", f"{at}mlp_res"]
    for name in mixers:
        shapes |= {f"{name}_norm.weight": (D,), f"{name}_proj.weight": (1, D)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def test_decoder_reads_alike_in_all_four_layer_cases(rng, text):
    weights, config = small_weights(rng), small(text)
    got = same(model.logits, weights, config, [3, 1, 4, 1, 5])
    assert got.shape == (5, 7)


def test_token_by_token_is_layer_by_layer_and_split_anywhere(rng, text):
    weights, config = small_weights(rng), small(text)
    embeddings = model.embed(weights["model.embed_tokens.weight"], [3, 1, 4, 1])
    empty = model.empty_states(weights, config)
    whole = model.run(weights, config, empty, embeddings)[1]
    np.testing.assert_allclose(
        model.run_by_layer(weights, config, embeddings), whole, atol=1e-12
    )
    states, left = model.run(weights, config, empty, embeddings[:3])
    right = model.run(weights, config, states, embeddings[3:])[1]
    np.testing.assert_array_equal(np.concatenate([left, right]), whole)


def test_gradient_of_every_weight_that_matters(rng, text):
    config = small(text)
    weights = {
        n: tensor.array(w).requires_grad_() for n, w in small_weights(rng).items()
    }

    def loss(rate, name):
        moved = weights | {name: weights[name] * rate}
        return model.logits(moved, config, [3, 1]).square().sum()

    rate = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    for name in (
        "model.layers.0.self_attn.A_log",
        "model.layers.3.mlp_res_proj.weight",
    ):
        assert torch.autograd.gradcheck(lambda r, n=name: loss(r, n), [rate])


def test_released_text_golden(text):
    golden = released.golden()
    ids = golden["ids"].tolist()
    got = model.logits(released.weights(), text, ids)
    assert relative(got, golden["logits_full"].reshape(got.shape)) < 3e-5


def test_taps_see_and_may_replace(rng, text):
    weights, config = small_weights(rng), small(text)
    seen = {}

    def look(name, value):
        seen[name] = value
        return value

    embeddings = model.embed(weights["model.embed_tokens.weight"], [3])
    empty = model.empty_states(weights, config)
    logits = model.run(weights, config, empty, embeddings, tap=look)[1]
    names = [f"layers.{i}.{n}" for i in range(4) for n in ("self_attn", "out_prefix")]
    assert list(seen) == [*names, "output_attn_res"]

    def blank(name, value):
        return value * 0 if name == "layers.3.self_attn" else value

    other = model.run(weights, config, empty, embeddings, tap=blank)[1]
    assert abs(logits - other).max() > 1e-3


def test_embedding_branches(rng):
    table, rows = rng.normal(size=(5, 3)), rng.normal(size=(2, 3))
    got = same(model.embed, table, [1, 4, 2, 4], rows, 4, exact=True)
    np.testing.assert_array_equal(got, [table[1], rows[0], table[2], rows[1]])
    np.testing.assert_array_equal(model.embed(table, [4]), [table[4]])
    with pytest.raises(AssertionError):
        model.embed(table, [1], rows, 4)


def test_released_image_prompt_golden(text):
    golden, weights = released.golden(), released.weights()
    vit = released.config().vision
    start, rows = 0, []
    for number, grid in enumerate(golden["grids"].tolist()):
        stop = start + int(np.prod(grid))
        patches = golden["pixel_values"][start:stop].astype(float)
        got = vision.features(
            weights,
            patches,
            tuple(grid),
            heads=vit.vt_num_attention_heads,
            blocks=vit.vt_num_hidden_layers,
        )
        assert relative(got, golden[f"proj_{number}"]) < 3e-6
        rows.append(got)
        start = stop
    # The stored prompt has one placeholder an image; the model takes one a row.
    placeholder = released.config().media_placeholder_token_id
    images = iter(rows)
    ids, features = [], []
    for token in golden["mm_ids"].reshape(-1).tolist():
        if token == placeholder:
            features.append(next(images))
        ids += [token] * (len(features[-1]) if token == placeholder else 1)
    got = model.logits(
        weights,
        text,
        ids,
        features=np.concatenate(features),
        placeholder=placeholder,
    )
    assert relative(got, golden["mm_logits"].reshape(got.shape)) < 1e-4


def test_mtp_reads_alike(rng, text):
    config = small(text)
    trunk = small_weights(rng)
    weights = under(trunk, "model.layers.3.")
    weights |= {
        "embed_tokens.weight": trunk["model.embed_tokens.weight"],
        "enorm.weight": rng.normal(size=6),
        "hnorm.weight": rng.normal(size=6),
        "eh_proj.weight": rng.normal(size=(6, 12)),
        "shared_head.norm.weight": rng.normal(size=6),
        "shared_head.head.weight": rng.normal(size=(7, 6)),
    }
    hidden = rng.normal(size=(3, 6))
    got = same(mtp.sequence, weights, config, [1, 5, 2], hidden)
    other = mtp.sequence(weights, config, [4, 5, 2], hidden)
    np.testing.assert_array_equal(got, other)
    later = mtp.sequence(weights, config, [1, 4, 2], hidden)
    assert abs(later[1] - got[1]).max() > 1e-3


def test_final_hidden_is_a_depth_mix(rng, text):
    weights, config = small_weights(rng), small(text)
    e = weights["model.embed_tokens.weight"][2]
    h = model.final_hidden(weights, config, attn_res.start(e))
    np.testing.assert_allclose(h, e)
