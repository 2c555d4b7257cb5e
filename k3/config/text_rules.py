"""The rules of text_config and linear_attn_config."""

from functools import partial
from typing import Any

from k3.config import schedule
from k3.config.rule import Rule, divides, equal, ids, positive, value_at

# 12 times what the release has; beyond it not even the names fit into memory.
MAX_EXPERTS = 2**20


def _packs(name: str, text: Any) -> bool:
    return text.quantization_config is None or value_at(text, name) % 32 == 0


def _blocks_of_32(names: str) -> list[Rule]:
    expected = "a multiple of 32: MXFP4 has one scale per 32 inputs"
    return [Rule(name, expected, partial(_packs, name)) for name in names.split()]


TEXT = [
    *equal(
        {
            "model_type": "kimi_linear",
            "hidden_act": "situ",
            "mla_use_nope": True,
            "mla_use_output_gate": True,
            "latent_moe_use_norm": True,
            "moe_renormalize": True,
            "moe_router_activation_func": "sigmoid",
            "topk_method": "noaux_tc",
            "tie_word_embeddings": False,
        }
    ),
    *positive(
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size"
        " activation_situ_beta activation_situ_linear_beta rms_norm_eps"
        " attn_res_block_size q_lora_rank kv_lora_rank qk_nope_head_dim"
        " qk_rope_head_dim v_head_dim num_experts num_experts_per_token"
        " num_shared_experts moe_intermediate_size routed_expert_hidden_size"
        " max_position_embeddings moe_layer_freq"
        " routed_scaling_factor initializer_range"
    ),
    *ids("bos_token_id eos_token_id pad_token_id"),
    Rule(
        "num_key_value_heads",
        "num_attention_heads: MLA has one key and value per query head",
        lambda t: t.num_key_value_heads == t.num_attention_heads,
    ),
    Rule(
        "first_k_dense_replace",
        "from 0 to num_hidden_layers",
        lambda t: 0 <= t.first_k_dense_replace <= t.num_hidden_layers,
    ),
    Rule(
        "num_hidden_layers",
        "at most 65536: each has its tensors",
        lambda t: t.num_hidden_layers <= 2**16,
    ),
    Rule(
        "num_experts",
        f"at most {MAX_EXPERTS:,} in all layers together: each has its tensors",
        lambda t: t.num_experts * t.num_hidden_layers <= MAX_EXPERTS,
    ),
    Rule(
        "num_experts_per_token",
        "at most num_experts",
        lambda t: t.num_experts_per_token <= t.num_experts,
    ),
    divides("num_expert_group", "num_experts", "groups are of equal size"),
    Rule(
        "topk_group",
        "num_expert_group: k3 keeps every group, as the release does",
        lambda t: t.topk_group == t.num_expert_group,
    ),
    Rule(
        "num_nextn_predict_layers",
        "0 or 1",
        lambda t: t.num_nextn_predict_layers in (0, 1),
    ),
    *_blocks_of_32("routed_expert_hidden_size moe_intermediate_size"),
    Rule(
        "linear_attn_config.full_attn_layers",
        schedule.expected_mla,
        schedule.mla_is_derived,
    ),
    Rule(
        "linear_attn_config.kda_layers", schedule.expected_kda, schedule.kda_is_derived
    ),
]

LINEAR = [
    *positive("head_dim num_heads short_conv_kernel_size"),
    *equal({"use_full_rank_gate": True}),
    Rule(
        "value_head_dim",
        "a positive number",
        lambda s: s.value_head_dim is None or s.value_head_dim > 0,
    ),
    Rule(
        "gate_lower_bound",
        "a negative number",
        lambda s: s.gate_lower_bound is None or s.gate_lower_bound < 0,
    ),
]
