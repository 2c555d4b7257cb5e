"""vision_config: MoonViT-V2 and its projector."""

from dataclasses import dataclass
from typing import ClassVar

from k3.config.section import Real, Section


@dataclass(frozen=True, kw_only=True, slots=True)
class VisionConfig(Section):
    """The image tower; each field is a key of vision_config."""

    BOOKKEEPING: ClassVar[frozenset[str]] = frozenset({"_attn_implementation"})

    patch_size: int
    vt_hidden_size: int
    vt_num_hidden_layers: int
    vt_num_attention_heads: int
    qkv_hidden_size: int
    vt_intermediate_size: int
    activation_func: str
    mlp_type: str
    norm_type: str
    attn_bias: bool
    linear_bias: bool
    patch_embed_proj_bias: bool
    init_pos_emb_height: int
    init_pos_emb_width: int
    init_pos_emb_time: int
    pos_emb_type: str
    pos_emb_interpolation_mode: str
    merge_kernel_size: tuple[int, ...]
    merge_type: str
    mm_projector_type: str
    mm_hidden_size: int
    projector_hidden_act: str
    projector_ln_eps: Real
    text_hidden_size: int
    # "joint" is the release; "divided" is the article's spatial, then temporal pass.
    attention: str = "joint"

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.qkv_hidden_size // self.vt_num_attention_heads

    @property
    def merged_hidden_size(self) -> int:
        """Channels of one merged neighbourhood, the projector's input width."""
        height, width = self.merge_kernel_size
        return height * width * self.vt_hidden_size
