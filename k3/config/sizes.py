"""What a config costs: parameters by component, bytes on disk, memory per token.

Formulas only, independent of the table in `checkpoint/names.py`; a test adds the
table up and must arrive at the same numbers.
"""

from dataclasses import dataclass

from k3.config.config import K3Config
from k3.config.text import TextConfig
from k3.config.vision import VisionConfig

_FP32 = 4
_BF16 = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Counts as stored.

    `total` is the sum of the components, zero padding of A_log included; `active` is
    what one text token uses: no embedding table, no vision, the chosen experts only.
    The MTP layer is counted apart, in `mtp`.
    """

    components: dict[str, int]
    total: int
    active: int
    padding: int
    mtp: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes of one sequence's DecodeState at a context length."""

    context_tokens: int
    kda_state_bytes: int
    conv_window_bytes: int
    mla_bytes_per_token: int

    @property
    def fixed_bytes(self) -> int:
        """What a sequence holds however short it is."""
        return self.kda_state_bytes + self.conv_window_bytes

    @property
    def sequence_bytes(self) -> int:
        """What it holds at the context length."""
        return self.fixed_bytes + self.context_tokens * self.mla_bytes_per_token


def parameters(config: K3Config) -> Parameters:
    """Section 2 of the release: parameters by component, total and active."""
    text, moe = config.text, len(config.text.moe_layers)
    components = {
        "embedding": text.vocab_size * text.hidden_size,
        "lm_head": text.vocab_size * text.hidden_size,
        "kda": len(text.kda_layers) * kda_layer(text),
        "mla": len(text.mla_layers) * mla_layer(text),
        "dense": (text.num_hidden_layers - moe) * dense_layer(text),
        "router": moe * (text.hidden_size + 1) * text.num_experts,
        "latent": moe * latent_layer(text),
        "shared_experts": moe * text.num_shared_experts * shared_expert(text),
        "routed_experts": moe * text.num_experts * expert(text),
        "norms": (6 * text.num_hidden_layers + 3) * text.hidden_size,
    }
    idle = text.num_experts - text.num_experts_per_token
    active = sum(components.values()) - components["embedding"]
    if config.vision is not None:
        components |= vision(config.vision)
    return Parameters(
        components=components,
        total=sum(components.values()),
        active=active - moe * idle * expert(text),
        padding=len(text.kda_layers) * a_log_padding(text),
        mtp=text.num_nextn_predict_layers * mtp_layer(text),
    )


def kda_layer(text: TextConfig) -> int:
    """Parameters of one KDA mixer, A_log at its padded length."""
    linear, hidden = text.linear_attn_config, text.hidden_size
    keys = linear.num_heads * linear.head_dim
    values = linear.num_heads * linear.v_dim
    projections = (2 * keys + 3 * values + linear.num_heads) * hidden
    decay = linear.head_dim * (hidden + keys)
    return projections + decay + kda_fp32(text)


def kda_fp32(text: TextConfig) -> int:
    """Those of a KDA mixer that are stored in fp32: conv, A_log, dt_bias, o_norm."""
    linear = text.linear_attn_config
    keys = linear.num_heads * linear.head_dim
    values = linear.num_heads * linear.v_dim
    conv = linear.short_conv_kernel_size * (2 * keys + values)
    return conv + linear.num_heads + a_log_padding(text) + keys + linear.v_dim


def a_log_padding(text: TextConfig) -> int:
    """Zeros behind one layer's A_log: the release pads the heads to the key width."""
    linear = text.linear_attn_config
    return max(linear.num_heads, linear.head_dim) - linear.num_heads


def mla_layer(text: TextConfig) -> int:
    """Parameters of one Gated MLA mixer."""
    heads, hidden = text.num_attention_heads, text.hidden_size
    query = text.qk_nope_head_dim + text.qk_rope_head_dim
    up_query = heads * query * text.q_lora_rank
    up_cache = heads * (text.qk_nope_head_dim + text.v_head_dim) * text.kv_lora_rank
    down = (text.q_lora_rank + text.mla_row_scalars) * hidden
    norms = text.q_lora_rank + text.kv_lora_rank
    return up_query + up_cache + down + norms + 2 * heads * text.v_head_dim * hidden


def dense_layer(text: TextConfig) -> int:
    """Parameters of one dense SiTU MLP."""
    return 3 * text.hidden_size * text.intermediate_size


def latent_layer(text: TextConfig) -> int:
    """Parameters of the way into the latent space and back, with its norm."""
    return (2 * text.hidden_size + 1) * text.routed_expert_hidden_size


def shared_expert(text: TextConfig) -> int:
    """Parameters of one shared expert, which is full width."""
    return 3 * text.hidden_size * text.moe_intermediate_size


def expert(text: TextConfig) -> int:
    """Parameters of one routed expert, which is latent width."""
    return 3 * text.routed_expert_hidden_size * text.moe_intermediate_size


def mtp_layer(text: TextConfig) -> int:
    """Parameters of one next-token-prediction layer: MLA, experts, own head."""
    hidden = text.hidden_size
    moe = (hidden + 1) * text.num_experts + latent_layer(text)
    moe += text.num_shared_experts * shared_expert(text)
    moe += text.num_experts * expert(text)
    joints = 2 * hidden * hidden + 5 * hidden + 2 * text.vocab_size * hidden
    return joints + mla_layer(text) + moe


def vision(tower: VisionConfig) -> dict[str, int]:
    """Parameters of the image tower and of its projector."""
    hidden = tower.vt_hidden_size
    patches = 3 * tower.patch_size**2 * hidden
    table = tower.init_pos_emb_height * tower.init_pos_emb_width * hidden
    attention = hidden + 4 * hidden * tower.qkv_hidden_size
    # Divided attention has a second set of weights, for the pass over frames.
    passes = 2 if tower.attention == "divided" else 1
    block = passes * attention + hidden + 2 * hidden * tower.vt_intermediate_size
    merged = tower.merged_hidden_size
    return {
        "vision": patches + table + tower.vt_num_hidden_layers * block + hidden,
        "projector": merged**2 + (merged + 1) * tower.text_hidden_size,
    }


def stored_bytes(config: K3Config) -> int:
    """Bytes of all tensors on disk in the released dtypes, MTP included."""
    text, count = config.text, parameters(config)
    layers = len(text.moe_layers) + text.num_nextn_predict_layers
    routed = layers * text.num_experts * expert(text)
    fp32 = len(text.kda_layers) * kda_fp32(text) + layers * text.num_experts
    rest = count.total + count.mtp - routed
    return _BF16 * rest + (_FP32 - _BF16) * fp32 + _routed_bytes(text, routed)


def _routed_bytes(text: TextConfig, scalars: int) -> int:
    """Half a byte per element and one scale byte per 32, or BF16 if not packed."""
    if text.quantization_config is None:
        return _BF16 * scalars
    return scalars // 2 + scalars // 32


def memory(config: K3Config, context_tokens: int, itemsize: int = _BF16) -> Memory:
    """What one sequence carries; KDA states are fp32, the rest `itemsize` wide."""
    text, kda = config.text, len(config.text.kda_layers)
    return Memory(
        context_tokens=context_tokens,
        kda_state_bytes=kda * text.kda_state_scalars * _FP32,
        conv_window_bytes=kda * text.conv_window_scalars * itemsize,
        mla_bytes_per_token=len(text.mla_layers) * text.mla_row_scalars * itemsize,
    )


def state_bytes(config: K3Config, tokens: int, itemsize: int = _BF16) -> int:
    """Bytes of one sequence's DecodeState after `tokens` tokens."""
    return memory(config, tokens, itemsize).sequence_bytes


def context_tokens(config: K3Config, budget_bytes: int, itemsize: int = _BF16) -> int:
    """How many tokens of one sequence fit into a budget; 0 if not even its states."""
    fixed = memory(config, 0, itemsize)
    room = max(0, budget_bytes - fixed.fixed_bytes)
    return room // fixed.mla_bytes_per_token
