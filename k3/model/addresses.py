"""Where the weights of a model lie, in the structures that the native step reads."""

import ctypes
from typing import Any, cast

from torch import nn

from k3.config import TextConfig
from k3.kernels.native import decode
from k3.model.decoder import LanguageModel, Layer
from k3.model.mla import LORA_EPS, MLA

LAYER = {
    "input_norm": "input_layernorm.weight",
    "post_norm": "post_attention_layernorm.weight",
    "attn_res_norm": "self_attention_res_norm.weight",
    "attn_res_proj": "self_attention_res_proj.weight",
    "mlp_res_norm": "mlp_res_norm.weight",
    "mlp_res_proj": "mlp_res_proj.weight",
}
KDA = {
    **{name: f"{name}_proj.weight" for name in ("q", "k", "v", "f_a", "f_b")},
    **{name: f"{name}_proj.weight" for name in ("b", "g", "o")},
    **{f"{name}_conv": f"{name}_conv1d.weight" for name in "qkv"},
    "A_log": "A_log",
    "dt_bias": "dt_bias",
    "o_norm": "o_norm.weight",
}
ATTENTION = {
    "q_a": "q_a_proj.weight",
    "q_a_norm": "q_a_layernorm.weight",
    "q_b": "q_b_proj.weight",
    "kv_a": "kv_a_proj_with_mqa.weight",
    "kv_a_norm": "kv_a_layernorm.weight",
    "kv_b": "kv_b_proj.weight",
    "g": "g_proj.weight",
    "o": "o_proj.weight",
}
MOE = {
    "router": "gate.weight",
    "router_bias": "gate.e_score_correction_bias",
    "latent_down": "routed_expert_down_proj.weight",
    "latent_norm": "routed_expert_norm.weight",
    "latent_up": "routed_expert_up_proj.weight",
}


class Addresses:
    """The structures of a model; they are valid while its weights stay in place."""

    def __init__(self, text: LanguageModel, config: TextConfig) -> None:
        last = text.model
        layers = cast("list[Layer]", list(last.layers[: last.num_layers]))
        self._tables: list[Any] = []
        self.sizes = _sizes(config, len(layers))
        made = [self._layer(layer) for layer in layers]
        self.layers = (decode.Layer * len(layers))(*made)
        self.model = decode.Model(
            sizes=ctypes.addressof(self.sizes),
            layers=ctypes.addressof(self.layers),
            embed=last.embed_tokens.weight.data_ptr(),
            output_res_norm=last.output_attn_res_norm.weight.data_ptr(),
            output_res_proj=last.output_attn_res_proj.weight.data_ptr(),
            norm=last.norm.weight.data_ptr(),
            head=text.lm_head.weight.data_ptr(),
        )

    def _layer(self, layer: Layer) -> decode.Layer:
        attends = isinstance(layer.self_attn, MLA)
        made = decode.Layer(
            is_mla=attends, is_moe=layer.sparse, starts_block=layer.starts_block
        )
        _put(made, layer, LAYER)
        _put(made, layer.self_attn, ATTENTION if attends else KDA)
        mlp = layer.block_sparse_moe.shared_experts if layer.sparse else layer.mlp
        made.width = mlp.gate_proj.weight.shape[0]
        _put(made, mlp, {n: f"{n}_proj.weight" for n in ("gate", "up", "down")})
        if layer.sparse:
            _put(made, layer.block_sparse_moe, MOE)
            tables = expert_tables(layer.block_sparse_moe.experts)
            self._tables.append(tables)
            for name, table in tables.items():
                setattr(made, name, ctypes.addressof(table))
        return made


def expert_tables(experts: Any) -> dict[str, Any]:
    """Addresses of every expert's matrices w1 .. w3, and of their scales s1 .. s3."""
    tables = {}
    for number in "123":
        names = {"w": f"w{number}"}
        if experts.packed:
            names = {"w": f"w{number}_packed", "s": f"w{number}_scale"}
        for letter, name in names.items():
            stack = getattr(experts, name)
            at = [stack[e].data_ptr() for e in range(experts.num_experts)]
            tables[f"{letter}{number}"] = (ctypes.c_void_p * len(at))(*at)
    return tables


def _put(made: decode.Layer, module: nn.Module, names: dict[str, str]) -> None:
    for field, path in names.items():
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part)
        setattr(made, field, found.data_ptr())


def _sizes(config: TextConfig, layers: int) -> decode.Sizes:
    c = config.linear_attn_config
    bound = c.gate_lower_bound
    return decode.Sizes(
        D=config.hidden_size,
        vocab=config.vocab_size,
        layers=layers,
        kda_heads=c.num_heads,
        K=c.head_dim,
        V=c.v_dim,
        past=c.short_conv_kernel_size - 1,
        mla_heads=config.num_attention_heads,
        nope=config.qk_nope_head_dim,
        rope=config.qk_rope_head_dim,
        mla_v=config.v_head_dim,
        q_lora=config.q_lora_rank,
        latent=config.kv_lora_rank,
        E=config.num_experts,
        active=config.num_experts_per_token,
        L=config.routed_expert_hidden_size,
        F=config.moe_intermediate_size,
        eps=config.rms_norm_eps,
        lora_eps=LORA_EPS,
        lower_bound=bound or 0.0,
        beta=config.activation_situ_beta,
        linear_beta=config.activation_situ_linear_beta,
        scaling=config.routed_scaling_factor,
        has_lower_bound=bound is not None,
    )
