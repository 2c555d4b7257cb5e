"""Every tensor of a checkpoint in the released layout: name, shape and dtype.

The table is written from the files, not from the model: the two must meet.
"""

from collections.abc import Iterator

from k3.config import K3Config, TextConfig, VisionConfig
from k3.errors import RequestError

Shape = tuple[int, ...]
Entry = tuple[str, Shape, str]
Table = dict[str, tuple[Shape, str]]

BITS = {"BF16": 16, "F32": 32, "U8": 8}
GROUP = 32


def expected(config: K3Config, experts: str = "packed") -> Table:
    """Return name -> (shape, dtype) of every tensor the release would hold.

    `experts="packed"` gives MXFP4 names where the config has a quantization_config,
    `"dense"` gives BF16 weights for the routed experts of any config.
    """
    if experts not in ("packed", "dense"):
        raise RequestError(f"experts must be 'packed' or 'dense': got {experts!r}")
    packed = experts == "packed" and config.text.quantization_config is not None
    prefix = "" if config.bare else "language_model."
    table = {prefix + n: (s, d) for n, s, d in _language(config.text, packed)}
    if config.vision is not None:
        table |= {n: (s, d) for n, s, d in _vision(config.vision)}
    return table


def a_log_lengths(config: K3Config) -> tuple[int, ...]:
    """Return the lengths A_log may have on disk, ours first.

    The release pads 96 heads to 128, which is both the key width and the next power
    of two; other writers of the layout chose one of these or no padding at all.
    """
    linear = config.text.linear_attn_config
    power = 1 << (linear.num_heads - 1).bit_length()
    padded = max(linear.num_heads, linear.head_dim)
    return tuple(dict.fromkeys((padded, power, linear.num_heads)))


def accepts(config: K3Config, name: str, shape: Shape, wanted: Shape) -> bool:
    """Whether a tensor on disk has a shape that the loader takes."""
    if name.endswith(".self_attn.A_log"):
        return len(shape) == 1 and shape[0] in a_log_lengths(config)
    return shape == wanted


def _language(text: TextConfig, packed: bool) -> Iterator[Entry]:
    hidden, words = text.hidden_size, text.vocab_size
    yield _weight("model.embed_tokens", words, hidden)
    for layer in range(text.num_hidden_layers):
        yield from _layer(text, layer, packed)
    if text.num_nextn_predict_layers:
        yield from _mtp(text, packed)
    yield _weight("model.norm", hidden)
    yield _weight("model.output_attn_res_norm", hidden)
    yield _weight("model.output_attn_res_proj", 1, hidden)
    yield _weight("lm_head", words, hidden)


def _layer(text: TextConfig, layer: int, packed: bool) -> Iterator[Entry]:
    at, hidden = f"model.layers.{layer}.", text.hidden_size
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield _weight(at + norm, hidden)
    for part in ("self_attention", "mlp"):
        yield _weight(f"{at}{part}_res_norm", hidden)
        yield _weight(f"{at}{part}_res_proj", 1, hidden)
    mixer = _mla if text.is_mla(layer) else _kda
    yield from mixer(text, f"{at}self_attn.")
    if text.is_moe(layer):
        yield from _moe(text, f"{at}block_sparse_moe.", packed)
    else:
        yield from _mlp(f"{at}mlp.", hidden, text.intermediate_size)


def _kda(text: TextConfig, at: str) -> Iterator[Entry]:
    linear, hidden = text.linear_attn_config, text.hidden_size
    heads, head = linear.num_heads, linear.head_dim
    keys, values = heads * head, heads * linear.v_dim
    for stream, width in (("q", keys), ("k", keys), ("v", values)):
        yield _weight(f"{at}{stream}_proj", width, hidden)
        conv = (width, 1, linear.short_conv_kernel_size)
        yield f"{at}{stream}_conv1d.weight", conv, "F32"
    yield f"{at}A_log", (max(heads, head),), "F32"
    yield f"{at}dt_bias", (keys,), "F32"
    yield _weight(at + "f_a_proj", head, hidden)
    yield _weight(at + "f_b_proj", keys, head)
    yield _weight(at + "b_proj", heads, hidden)
    yield _weight(at + "g_proj", values, hidden)
    yield f"{at}o_norm.weight", (linear.v_dim,), "F32"
    yield _weight(at + "o_proj", hidden, values)


def _mla(text: TextConfig, at: str) -> Iterator[Entry]:
    hidden, heads = text.hidden_size, text.num_attention_heads
    nope, shared, value = text.qk_nope_head_dim, text.qk_rope_head_dim, text.v_head_dim
    yield _weight(at + "q_a_proj", text.q_lora_rank, hidden)
    yield _weight(at + "q_a_layernorm", text.q_lora_rank)
    yield _weight(at + "q_b_proj", heads * (nope + shared), text.q_lora_rank)
    yield _weight(at + "kv_a_proj_with_mqa", text.kv_lora_rank + shared, hidden)
    yield _weight(at + "kv_a_layernorm", text.kv_lora_rank)
    yield _weight(at + "kv_b_proj", heads * (nope + value), text.kv_lora_rank)
    yield _weight(at + "g_proj", heads * value, hidden)
    yield _weight(at + "o_proj", hidden, heads * value)


def _moe(text: TextConfig, at: str, packed: bool) -> Iterator[Entry]:
    hidden, latent = text.hidden_size, text.routed_expert_hidden_size
    yield _weight(at + "gate", text.num_experts, hidden)
    yield f"{at}gate.e_score_correction_bias", (text.num_experts,), "F32"
    yield _weight(at + "routed_expert_down_proj", latent, hidden)
    yield _weight(at + "routed_expert_norm", latent)
    yield _weight(at + "routed_expert_up_proj", hidden, latent)
    shared = text.num_shared_experts * text.moe_intermediate_size
    yield from _mlp(f"{at}shared_experts.", hidden, shared)
    for expert in range(text.num_experts):
        yield from _expert(text, f"{at}experts.{expert}.", packed)


def _expert(text: TextConfig, at: str, packed: bool) -> Iterator[Entry]:
    wide, latent = text.moe_intermediate_size, text.routed_expert_hidden_size
    for name, rows, columns in (
        ("w1", wide, latent),
        ("w2", latent, wide),
        ("w3", wide, latent),
    ):
        if packed:
            yield f"{at}{name}.weight_packed", (rows, columns // 2), "U8"
            yield f"{at}{name}.weight_scale", (rows, columns // GROUP), "U8"
        else:
            yield _weight(at + name, rows, columns)


def _mtp(text: TextConfig, packed: bool) -> Iterator[Entry]:
    at, hidden = f"model.layers.{text.num_hidden_layers}.", text.hidden_size
    for norm in ("enorm", "hnorm", "shared_head.norm"):
        yield _weight(at + norm, hidden)
    yield _weight(at + "eh_proj", hidden, 2 * hidden)
    yield _weight(at + "shared_head.head", text.vocab_size, hidden)
    yield _weight(at + "embed_tokens", text.vocab_size, hidden)
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield _weight(at + norm, hidden)
    yield from _mla(text, f"{at}self_attn.")
    yield from _moe(text, f"{at}block_sparse_moe.", packed)


def _vision(vision: VisionConfig) -> Iterator[Entry]:
    hidden, tower = vision.vt_hidden_size, "vision_tower."
    patch = vision.patch_size
    yield _weight(f"{tower}patch_embed.proj", hidden, 3, patch, patch)
    grid = (vision.init_pos_emb_height, vision.init_pos_emb_width)
    yield _weight(f"{tower}patch_embed.pos_emb", *grid, hidden)
    for block in range(vision.vt_num_hidden_layers):
        yield from _vision_block(vision, f"{tower}encoder.blocks.{block}.")
    yield _weight(f"{tower}encoder.final_layernorm", hidden)
    merged = vision.merged_hidden_size
    yield _weight("mm_projector.proj.0", merged, merged)
    yield _weight("mm_projector.proj.2", vision.text_hidden_size, merged)
    yield _weight("mm_projector.post_norm", vision.text_hidden_size)


def _vision_block(vision: VisionConfig, at: str) -> Iterator[Entry]:
    hidden, inner = vision.vt_hidden_size, vision.vt_intermediate_size
    yield _weight(at + "norm0", hidden)
    yield _weight(at + "norm1", hidden)
    yield _weight(at + "wqkv", 3 * vision.qkv_hidden_size, hidden)
    yield _weight(at + "wo", hidden, vision.qkv_hidden_size)
    yield _weight(at + "mlp.fc0", inner, hidden)
    yield _weight(at + "mlp.fc1", hidden, inner)
    if vision.attention == "divided":
        # The article's temporal pass has weights of its own; the release has none.
        yield _weight(at + "norm_time", hidden)
        yield _weight(at + "wqkv_time", 3 * vision.qkv_hidden_size, hidden)
        yield _weight(at + "wo_time", hidden, vision.qkv_hidden_size)


def _mlp(at: str, hidden: int, wide: int) -> Iterator[Entry]:
    yield _weight(at + "gate_proj", wide, hidden)
    yield _weight(at + "up_proj", wide, hidden)
    yield _weight(at + "down_proj", hidden, wide)


def _weight(name: str, *shape: int) -> Entry:
    return f"{name}.weight", shape, "BF16"
