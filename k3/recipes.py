"""Ready configurations as Python functions: the published model, the paper's, tiny."""

from typing import Any

from k3.config import K3Config
from k3.config.published import published
from k3.errors import RequestError
from k3.train.recipe import Recipe


def released() -> K3Config:
    """The published config.json: 93 layers, 896 experts, no MTP layer."""
    return K3Config.from_dict(published())


def paper() -> K3Config:
    """Table 1: the released model with its one next-token-prediction layer."""
    data = published()
    data["text_config"]["num_nextn_predict_layers"] = 1
    return K3Config.from_dict(data)


def tiny() -> Recipe:
    """The model in the package: 2.3 M parameters, every mechanism of the release.

    Nine layers, so that MLA stands at 4, 8 and last as 4, ..., 92, 93 does, and
    depth blocks of two, so that five block outputs are retrieved from. Text, chat in
    XTML and pictures of digits from the first step.
    """
    return Recipe(
        name="tiny",
        config=_tiny(1536),
        num_ranks=1536,
        mixture=(
            ("text", 0.52),
            ("recall", 0.15),
            ("digits", 0.1),
            ("tools", 0.15),
            ("chat", 0.08),
        ),
        steps=5000,
        batch=4,
        tokens=512,
        micro_batch=2,
        optimizer="muon",
        learning_rate=1e-2,
        adamw_rate=0.4,
        schedule="cosine",
        warmup=0.01,
    )


SCALING = {32: (5, 80), 48: (6, 110), 64: (7, 150), 96: (9, 200)}
"""Width of each model of the sweep: its layers and its steps."""


def scaling(width: int = 64) -> Recipe:
    """One model of the sweep of k3.train.scaling: text alone, bytes its vocabulary."""
    if width not in SCALING:
        raise RequestError(
            f"the sweep has widths {', '.join(map(str, SCALING))}: got {width!r}; "
            "choose one"
        )
    layers, steps = SCALING[width]
    return Recipe(
        name="scaling",
        config=_scaled(width, layers),
        num_ranks=256,
        steps=steps,
        batch=2,
        tokens=256,
        micro_batch=2,
        learning_rate=4e-3,
        workers=1,
    )


def _scaled(width: int, layers: int) -> K3Config:
    """The tiny text model at another width and depth, heads of 16."""
    heads, mla = width // 16, sorted({*range(4, layers + 1, 4), layers})
    data = _tiny(256).to_dict()
    data.pop("vision_config", None)
    text = data["text_config"]
    text |= {
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "kv_lora_rank": width // 2,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": heads,
        "num_nextn_predict_layers": 0,
        "q_lora_rank": width // 2,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "routed_expert_hidden_size": 64 if width > 64 else 32,
        "v_head_dim": 16,
    }
    text["linear_attn_config"] |= {
        "full_attn_layers": mla,
        "head_dim": 16,
        "kda_layers": [i for i in range(1, layers + 1) if i not in mla],
        "num_heads": heads,
    }
    return K3Config.from_dict(data)


_TINY: dict[str, Any] = {
    "attn_res_block_size": 2,
    "hidden_size": 128,
    "initializer_range": 0.08,
    "intermediate_size": 256,
    "kv_lora_rank": 64,
    "max_position_embeddings": 8192,
    "moe_intermediate_size": 32,
    "num_attention_heads": 4,
    "num_experts": 8,
    "num_experts_per_token": 2,
    "num_hidden_layers": 9,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "routed_expert_hidden_size": 64,
    "v_head_dim": 32,
}


_TINY_VISION: dict[str, Any] = {
    "init_pos_emb_height": 4,
    "init_pos_emb_width": 4,
    "mm_hidden_size": 64,
    "qkv_hidden_size": 64,
    "text_hidden_size": 128,
    "vt_hidden_size": 64,
    "vt_intermediate_size": 128,
    "vt_num_attention_heads": 2,
    "vt_num_hidden_layers": 2,
}


def _tiny(num_ranks: int) -> K3Config:
    """The released fields with small sizes; specials stand after the ranks."""
    data = published()
    data["vision_config"] |= _TINY_VISION
    # A document ends with [EOS]; a message with its own marker, which whoever renders
    # messages also stops at.
    ids = {
        "bos_token_id": num_ranks,
        "eos_token_id": num_ranks + 1,
        "pad_token_id": num_ranks + 255,
    }
    data |= ids | {"media_placeholder_token_id": num_ranks + 21}
    text = data["text_config"]
    text |= _TINY | ids | {"vocab_size": num_ranks + 256}
    mla = [4, 8, 9]
    text["linear_attn_config"] |= {
        "full_attn_layers": mla,
        "head_dim": 32,
        "kda_layers": [i for i in range(1, 10) if i not in mla],
        "num_heads": 4,
    }
    return K3Config.from_dict(data)
