"""Mutants of loading: weights of the right shape in the wrong place."""

from mutants.patch import Load, Mutant

AT = "language_model.model.layers."


def swapped(a, b):
    """Exchange two names, in every layer that has them."""

    def change(weights):
        out = dict(weights)
        for name in weights:
            if name.endswith(a):
                other = name.removesuffix(a) + b
                out[name], out[other] = weights[other], weights[name]
        return out

    return Load(change)


def changed(end, op):
    """Apply an operation to every weight of a name."""
    return Load(
        lambda weights: {n: op(w) if n.endswith(end) else w for n, w in weights.items()}
    )


def heads_swapped(w):
    """The first two heads of a matrix's columns exchanged: 2 heads of 4."""
    return w.unflatten(1, (2, -1)).flip(1).flatten(1)


MUTANTS = [
    Mutant(
        "load: q_proj and k_proj swapped",
        swapped("attn.q_proj.weight", "attn.k_proj.weight"),
        "self_attn",
    ),
    Mutant(
        "load: q and k convolutions swapped",
        swapped("q_conv1d.weight", "k_conv1d.weight"),
        "self_attn",
    ),
    Mutant(
        "load: b_proj heads reversed",
        changed("b_proj.weight", lambda w: w.flip(0) if len(w) == 2 else w),
        "self_attn",
    ),
    Mutant(
        "load: A_log heads reversed", changed("A_log", lambda w: w.flip(0)), "self_attn"
    ),
    Mutant(
        "load: convolution taps reversed",
        changed("v_conv1d.weight", lambda w: w.flip(-1)),
        "self_attn",
    ),
    Mutant(
        "load: o_proj heads swapped",
        changed("o_proj.weight", heads_swapped),
        "self_attn",
    ),
    Mutant(
        "load: input and post norms swapped",
        swapped("input_layernorm.weight", "post_attention_layernorm.weight"),
        "input_layernorm",
    ),
    Mutant(
        "load: depth queries swapped",
        swapped("self_attention_res_proj.weight", "mlp_res_proj.weight"),
        "mlp_res",
    ),
    Mutant(
        "load: query and row norms swapped",
        swapped("q_a_layernorm.weight", "kv_a_layernorm.weight"),
        "self_attn",
    ),
    Mutant(
        "load: kv_b head major lost",
        changed(
            "kv_b_proj.weight",
            lambda w: w.unflatten(0, (-1, 2)).transpose(0, 1).flatten(0, 1),
        ),
        "self_attn",
    ),
    Mutant(
        "load: experts 0 and 1 swapped",
        changed("experts.w1", lambda w: w[[1, 0, *range(2, len(w))]]),
        "block_sparse_moe",
    ),
    Mutant(
        "load: w1 and w3 swapped",
        swapped("experts.w1", "experts.w3"),
        "block_sparse_moe",
    ),
    Mutant(
        "load: router bias negated",
        changed("e_score_correction_bias", lambda w: -w),
        "block_sparse_moe",
    ),
    Mutant(
        "load: embedding one row off",
        changed("embed_tokens.weight", lambda w: w.roll(1, 0)),
        "layers.0.",
    ),
    Mutant(
        "load: gate and up of the MLP swapped",
        swapped("mlp.gate_proj.weight", "mlp.up_proj.weight"),
        "mlp",
    ),
]
