"""text_config and its linear_attn_config: the language model's numbers."""

from dataclasses import dataclass
from typing import ClassVar

from k3.config.quantization import QuantizationConfig
from k3.config.section import Real, Section

# Plain Hugging Face fields that say nothing about the model: kept, never read.
_BOOKKEEPING = """
_name_or_path add_cross_attention architectures auto_map bad_words_ids
begin_suppress_tokens chunk_size_feed_forward cross_attention_hidden_size
decoder_start_token_id diversity_penalty do_sample early_stopping
encoder_no_repeat_ngram_size exponential_decay_length_penalty finetuning_task
forced_bos_token_id forced_eos_token_id id2label is_decoder is_encoder_decoder label2id
length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams
num_return_sequences output_attentions output_hidden_states output_scores prefix
problem_type pruned_heads remove_invalid_values repetition_penalty return_dict
return_dict_in_generate sep_token_id suppress_tokens task_specific_params temperature
tf_legacy_loss tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript
transformers_version typical_p use_bfloat16
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearAttnConfig(Section):
    """KDA's numbers, and which layers are KDA and which MLA (counted from 1)."""

    head_dim: int
    num_heads: int
    short_conv_kernel_size: int
    kda_layers: tuple[int, ...]
    full_attn_layers: tuple[int, ...]
    # None selects Kimi-Linear's unbounded softplus gate.
    gate_lower_bound: Real | None = None
    use_full_rank_gate: bool = False
    value_head_dim: int | None = None

    @property
    def v_dim(self) -> int:
        """Width of one value head; the key width unless the file says otherwise."""
        return self.head_dim if self.value_head_dim is None else self.value_head_dim


@dataclass(frozen=True, kw_only=True, slots=True)
class TextConfig(Section):
    """The language model; each field is a key of text_config."""

    BOOKKEEPING: ClassVar[frozenset[str]] = frozenset(_BOOKKEEPING.split())

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    first_k_dense_replace: int
    hidden_act: str
    activation_situ_beta: Real
    activation_situ_linear_beta: Real
    rms_norm_eps: Real
    attn_res_block_size: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    mla_use_nope: bool
    mla_use_output_gate: bool
    num_experts: int
    num_experts_per_token: int
    num_shared_experts: int
    moe_intermediate_size: int
    routed_expert_hidden_size: int
    latent_moe_use_norm: bool
    moe_renormalize: bool
    moe_router_activation_func: str
    topk_method: str
    max_position_embeddings: int
    linear_attn_config: LinearAttnConfig
    moe_layer_freq: int = 1
    use_grouped_topk: bool = True
    num_expert_group: int = 1
    topk_group: int = 1
    routed_scaling_factor: Real = 1.0
    num_nextn_predict_layers: int = 0
    tie_word_embeddings: bool = False
    initializer_range: Real = 0.02
    use_cache: bool = True
    dtype: str | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    pad_token_id: int | None = None
    quantization_config: QuantizationConfig | None = None

    def is_mla(self, layer: int) -> bool:
        """Whether a layer, counted from 0, is MLA; every other one is KDA."""
        # The one place where the file's count from 1 meets our count from 0.
        return layer + 1 in self.linear_attn_config.full_attn_layers

    def is_moe(self, layer: int) -> bool:
        """Whether a layer, counted from 0, has experts in place of a dense MLP."""
        late = layer >= self.first_k_dense_replace
        return late and layer % self.moe_layer_freq == 0

    @property
    def mla_layers(self) -> tuple[int, ...]:
        """The MLA layers, counted from 0."""
        return tuple(i for i in range(self.num_hidden_layers) if self.is_mla(i))

    @property
    def kda_layers(self) -> tuple[int, ...]:
        """The KDA layers, counted from 0."""
        return tuple(i for i in range(self.num_hidden_layers) if not self.is_mla(i))

    @property
    def moe_layers(self) -> tuple[int, ...]:
        """The layers with experts, counted from 0."""
        return tuple(i for i in range(self.num_hidden_layers) if self.is_moe(i))

    @property
    def mla_row_scalars(self) -> int:
        """Scalars one token leaves in one MLA layer: latent and shared key (576)."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def mla_expanded_scalars(self) -> int:
        """The same token with every head's key and value written out (30,720)."""
        head = self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim
        return self.num_attention_heads * head

    @property
    def attn_res_sources(self) -> int:
        """Sources of the last depth mix: embedding, blocks, partial block (9)."""
        return 1 + -(-self.num_hidden_layers // self.attn_res_block_size)

    @property
    def kda_state_scalars(self) -> int:
        """Scalars of one KDA layer's matrix memory S (1,572,864)."""
        linear = self.linear_attn_config
        return linear.num_heads * linear.head_dim * linear.v_dim

    @property
    def conv_window_scalars(self) -> int:
        """Scalars of one KDA layer's carried q, k and v convolution windows."""
        linear = self.linear_attn_config
        channels = linear.num_heads * (2 * linear.head_dim + linear.v_dim)
        return (linear.short_conv_kernel_size - 1) * channels
