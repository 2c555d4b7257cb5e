"""The rules of vision_config: MoonViT-V2 as released, or with divided attention."""

from k3.config.rule import Rule, divides, equal, positive

VISION = [
    *positive(
        "patch_size vt_hidden_size vt_num_hidden_layers qkv_hidden_size"
        " vt_intermediate_size init_pos_emb_height init_pos_emb_width"
        " init_pos_emb_time projector_ln_eps"
    ),
    *equal(
        {
            "activation_func": "gelu_pytorch_tanh",
            "mlp_type": "mlp2",
            "norm_type": "rmsnorm",
            "attn_bias": False,
            "linear_bias": False,
            "patch_embed_proj_bias": False,
            "pos_emb_type": "divided_fixed",
            "pos_emb_interpolation_mode": "bilinear",
            "merge_type": "sd2_tpool",
            "mm_projector_type": "patchmergerv2",
            "projector_hidden_act": "gelu",
        }
    ),
    Rule(
        "vt_num_hidden_layers",
        "at most 4096: each has its tensors",
        lambda v: v.vt_num_hidden_layers <= 4096,
    ),
    divides("vt_num_attention_heads", "qkv_hidden_size", "heads are of equal width"),
    Rule(
        "qkv_hidden_size",
        "4 times a whole number per head: 2-D rotary turns pairs by column and by row",
        lambda v: v.qkv_hidden_size % (4 * max(1, v.vt_num_attention_heads)) == 0,
    ),
    Rule(
        "vt_hidden_size",
        "an even number: the time embedding is sines, then cosines",
        lambda v: v.vt_hidden_size % 2 == 0,
    ),
    Rule(
        "mm_hidden_size",
        "vt_hidden_size: the projector reads merged patches of the tower",
        lambda v: v.mm_hidden_size == v.vt_hidden_size,
    ),
    Rule(
        "merge_kernel_size",
        "two positive numbers, rows and columns",
        lambda v: len(v.merge_kernel_size) == 2 and min(v.merge_kernel_size) > 0,
    ),
    Rule(
        "attention",
        "'joint' (the release) or 'divided' (the article)",
        lambda v: v.attention in ("joint", "divided"),
    ),
]
