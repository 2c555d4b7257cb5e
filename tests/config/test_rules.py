"""Every rule: one wrong field is refused by name, and all wrong fields at once."""

import pytest
from published import DELETED, changed, complaint, published

from k3.config import K3Config

LINEAR = "text_config.linear_attn_config"
GROUP = "text_config.quantization_config.config_groups.group_0"


POSITIVE = [
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "activation_situ_beta",
    "activation_situ_linear_beta",
    "rms_norm_eps",
    "attn_res_block_size",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "num_experts",
    "num_experts_per_token",
    "num_shared_experts",
    "moe_intermediate_size",
    "routed_expert_hidden_size",
    "max_position_embeddings",
    "moe_layer_freq",
    "routed_scaling_factor",
    "initializer_range",
]
LINEAR_POSITIVE = ["head_dim", "num_heads", "short_conv_kernel_size", "value_head_dim"]
VISION_POSITIVE = [
    "patch_size",
    "vt_hidden_size",
    "vt_num_hidden_layers",
    "vt_num_attention_heads",
    "qkv_hidden_size",
    "vt_intermediate_size",
    "init_pos_emb_height",
    "init_pos_emb_width",
    "init_pos_emb_time",
    "projector_ln_eps",
]


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize(
    "name",
    [f"text_config.{n}" for n in POSITIVE]
    + [f"{LINEAR}.{n}" for n in LINEAR_POSITIVE]
    + [f"vision_config.{n}" for n in VISION_POSITIVE],
)
def test_sizes_are_positive(name, value):
    assert f"  {name}: got {value}, expected a positive" in complaint({name: value})


FIXED = {
    "tie_word_embeddings": (True, "false"),
    "text_config.tie_word_embeddings": (True, "false"),
    "text_config.model_type": ("llama", "'kimi_linear'"),
    "text_config.hidden_act": ("silu", "'situ'"),
    "text_config.mla_use_nope": (False, "true"),
    "text_config.mla_use_output_gate": (False, "true"),
    "text_config.latent_moe_use_norm": (False, "true"),
    "text_config.moe_renormalize": (False, "true"),
    "text_config.moe_router_activation_func": ("softmax", "'sigmoid'"),
    "text_config.topk_method": ("greedy", "'noaux_tc'"),
    f"{LINEAR}.use_full_rank_gate": (False, "true"),
    "text_config.quantization_config.quant_method": ("awq", "'compressed-tensors'"),
    "text_config.quantization_config.format": ("int4", "'mxfp4-pack-quantized'"),
    "text_config.quantization_config.kv_cache_scheme": ({"num_bits": 8}, "null"),
    f"{GROUP}.weights.num_bits": (8, "4"),
    f"{GROUP}.weights.type": ("int", "'float'"),
    f"{GROUP}.weights.group_size": (16, "32"),
    f"{GROUP}.weights.strategy": ("channel", "'group'"),
    f"{GROUP}.weights.symmetric": (False, "true"),
    f"{GROUP}.weights.dynamic": (True, "false"),
    f"{GROUP}.weights.scale_dtype": ("torch.float16", "'torch.uint8'"),
    f"{GROUP}.input_activations": ({"num_bits": 8}, "null"),
    f"{GROUP}.output_activations": ({"num_bits": 8}, "null"),
    "vision_config.activation_func": ("relu", "'gelu_pytorch_tanh'"),
    "vision_config.mlp_type": ("mlp3", "'mlp2'"),
    "vision_config.norm_type": ("layernorm", "'rmsnorm'"),
    "vision_config.attn_bias": (True, "false"),
    "vision_config.linear_bias": (True, "false"),
    "vision_config.patch_embed_proj_bias": (True, "false"),
    "vision_config.pos_emb_type": ("fixed", "'divided_fixed'"),
    "vision_config.pos_emb_interpolation_mode": ("bicubic", "'bilinear'"),
    "vision_config.merge_type": ("none", "'sd2_tpool'"),
    "vision_config.mm_projector_type": ("linear", "'patchmergerv2'"),
    "vision_config.projector_hidden_act": ("silu", "'gelu'"),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_k3_computes_is_fixed(name):
    value, expected = FIXED[name]
    text = complaint({name: value})
    assert f"  {name}: got " in text
    assert f", expected {expected}" in text
    assert "1 wrong field:" in text


RELATIONS = {
    "model_type": ("deepseek", "'kimi_k3'"),
    "pad_token_id": (163840, "a token id below vocab_size"),
    "text_config.eos_token_id": (-1, "a token id below vocab_size"),
    "media_placeholder_token_id": (DELETED, "because vision_config is present"),
    "text_config.num_key_value_heads": (8, "num_attention_heads"),
    "text_config.first_k_dense_replace": (94, "from 0 to num_hidden_layers"),
    "text_config.num_experts_per_token": (897, "at most num_experts"),
    "text_config.num_expert_group": (5, "a positive divisor of num_experts"),
    "text_config.topk_group": (2, "num_expert_group"),
    "text_config.num_nextn_predict_layers": (2, "0 or 1"),
    "text_config.routed_expert_hidden_size": (3600, "a multiple of 32"),
    "text_config.moe_intermediate_size": (3100, "a multiple of 32"),
    "text_config.quantization_config.config_groups": ({}, "one group, named group_0"),
    f"{GROUP}.weights": (DELETED, "num_bits: got nothing, expected 4"),
    f"{LINEAR}.gate_lower_bound": (0.0, "a negative number"),
    "vision_config.vt_num_attention_heads": (11, "a positive divisor"),
    "vision_config.qkv_hidden_size": (1512, "4 times a whole number per head"),
    "vision_config.mm_hidden_size": (512, "vt_hidden_size"),
    "vision_config.text_hidden_size": (7169, "text_config.hidden_size"),
    "vision_config.merge_kernel_size": ([2, 0], "two positive numbers"),
    "vision_config.attention": ("spatial", "'joint' (the release) or 'divided'"),
    "quantization_config": ({"quant_method": "fp8"}, "a string"),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_between_fields(name):
    value, expected = RELATIONS[name]
    text = complaint({name: value})
    assert name in text
    assert expected in text


def test_odd_tower_width():
    text = complaint(
        {"vision_config.vt_hidden_size": 1023, "vision_config.mm_hidden_size": 1023}
    )
    assert "vision_config.vt_hidden_size: got 1023, expected an even number" in text


@pytest.mark.parametrize(
    ("value", "came"), [(True, "true"), (1.5, "1.5"), ("8", "'8'"), (None, "null")]
)
def test_types_are_not_guessed(value, came):
    text = complaint({"text_config.num_experts": value})
    assert f"text_config.num_experts: got {came}, expected an integer" in text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1e-5"])
def test_numbers_are_finite(value):
    text = complaint({"text_config.rms_norm_eps": value})
    assert "expected a finite number" in text


def test_a_kimi_k3_config_without_gate_floor_is_refused():
    for value in (None, DELETED):
        text = complaint({f"{LINEAR}.gate_lower_bound": value})
        assert "only a bare kimi_linear config has the softplus gate" in text


def test_sections_of_the_wrong_kind():
    text = complaint({"vision_config": [], LINEAR: 3})
    assert "vision_config: got [], expected an object or null" in text
    assert f"{LINEAR}: got 3, expected an object" in text


def test_all_wrong_fields_at_once():
    text = complaint(
        {
            "text_config.hidden_size": "big",
            "text_config.vocab_size": DELETED,
            "text_config.num_experts_per_token": 1000,
            f"{LINEAR}.full_attn_layers": [1],
            f"{GROUP}.weights.group_size": 64,
            "vision_config.attention": "x",
            "pad_token_id": 1.5,
        }
    )
    assert text.splitlines()[0] == "config.json has 7 wrong fields:"
    assert len(text.splitlines()) == 8
    assert "text_config.vocab_size: got nothing, expected an integer" in text


def test_32_divides_only_where_experts_are_packed():
    K3Config.from_dict(
        changed(
            {
                "text_config.quantization_config": DELETED,
                "text_config.moe_intermediate_size": 20,
                "text_config.routed_expert_hidden_size": 24,
            }
        )
    )


def test_inert_groups_and_divided_attention_are_allowed():
    config = K3Config.from_dict(
        changed(
            {
                "text_config.num_expert_group": 8,
                "text_config.topk_group": 8,
                "vision_config.attention": "divided",
                f"{LINEAR}.value_head_dim": 64,
            }
        )
    )
    assert config.text.linear_attn_config.v_dim == 64
    assert config.vision.attention == "divided"


FULL = published()["text_config"]["linear_attn_config"]["full_attn_layers"]
KDA = published()["text_config"]["linear_attn_config"]["kda_layers"]


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({"full_attn_layers": [p - 1 for p in FULL]}, "missing [93]; surplus [3]"),
        ({"full_attn_layers": [*FULL, 90]}, "surplus [90]"),
        ({"full_attn_layers": FULL[:-1]}, "missing [93]"),
        ({"kda_layers": [*KDA, 92]}, "surplus [92]"),
        ({"kda_layers": KDA[1:]}, "missing [1]"),
        ({"kda_layers": [*KDA, 1]}, "kda_layers: got [1, 2, 3, 5, ... 91, 1]"),
        ({"kda_layers": []}, "kda_layers: got [], expected every layer that is not"),
    ],
)
def test_report_80_layer_lists_equal_the_schedule(lists, says):
    lists = {f"{LINEAR}.{name}": value for name, value in lists.items()}
    text = complaint(lists)
    if says == "missing [93]; surplus [3]":
        assert "missing [4, 8, 12, 16, ... 88, 93]" in text
        assert "surplus [3, 7, 11, 15, ... 87, 91]" in text
    else:
        assert says in text


def test_an_absurd_layer_count_is_cheap_to_refuse():
    text = complaint({"text_config.num_hidden_layers": 10**15})
    assert f"{LINEAR}.full_attn_layers" in text


@pytest.mark.parametrize("value", [2**20, 10**30, 10**4000])
@pytest.mark.parametrize(
    "name",
    [
        "text_config.num_experts",
        "text_config.num_hidden_layers",
        "vision_config.vt_num_hidden_layers",
    ],
)
def test_a_count_that_no_memory_holds_is_refused(name, value):
    assert name.rpartition("config.")[2] in complaint({name: value})


@pytest.mark.parametrize(
    "name",
    [
        "text_config.hidden_size",
        "text_config.vocab_size",
        "text_config.linear_attn_config.num_heads",
        "vision_config.vt_hidden_size",
    ],
)
def test_a_size_that_no_tensor_has_is_refused(name):
    message = complaint({name: 2**31})
    assert f"{name}: got 2147483648, expected a positive number below 2^31" in message
