"""The text decoder: embedding, layers over depth, final retrieval, head."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3.config import TextConfig
from k3.model.attn_res import Depth
from k3.model.decode_state import Cache
from k3.model.kda import KDA
from k3.model.linear import RMSNorm, linear
from k3.model.mla import MLA
from k3.model.mlp import MLP
from k3.model.moe import MoE
from k3.model.mtp import MTP
from k3.model.taps import Taps, record


class Layer(nn.Module):
    """One layer: two depth retrievals, a mixer over tokens, a feed-forward."""

    def __init__(
        self, config: TextConfig, index: int, dtype: torch.dtype, experts: str
    ) -> None:
        super().__init__()
        D, eps = config.hidden_size, float(config.rms_norm_eps)
        self.name = f"layers.{index}"
        self.starts_block = index % config.attn_res_block_size == 0
        self.self_attn = (MLA if config.is_mla(index) else KDA)(config, dtype)
        if config.is_moe(index):
            self.block_sparse_moe = MoE(config, dtype, experts)
        else:
            self.mlp = MLP(config, config.intermediate_size, dtype)
        self.sparse = config.is_moe(index)
        self.input_layernorm = RMSNorm(D, eps, dtype)
        self.post_attention_layernorm = RMSNorm(D, eps, dtype)
        self.self_attention_res_norm = RMSNorm(D, eps, dtype)
        self.self_attention_res_proj = linear(D, 1, dtype)
        self.mlp_res_norm = RMSNorm(D, eps, dtype)
        self.mlp_res_proj = linear(D, 1, dtype)

    def forward(
        self,
        depth: Depth,
        dtype: torch.dtype,
        cache: Cache | None,
        lens: tuple[int, ...] | None,
        taps: Taps | None,
    ) -> None:
        """Eq. 10: retrieve, mix over tokens, retrieve, feed forward, into `depth`."""
        h = depth.retrieve(
            self.self_attention_res_norm, self.self_attention_res_proj, dtype
        )
        if self.starts_block:
            depth.commit()
        y = self.self_attn(self.input_layernorm(h), cache, lens)
        record(taps, f"{self.name}.self_attn", y)
        depth.add(y)
        h = depth.retrieve(self.mlp_res_norm, self.mlp_res_proj, dtype)
        x = self.post_attention_layernorm(h)
        if self.sparse:
            y = self.block_sparse_moe(x, taps, f"{self.name}.block_sparse_moe")
        else:
            y = self.mlp(x)
        depth.add(y)
        assert depth.prefix is not None
        record(taps, f"{self.name}.out_prefix", depth.prefix)


class Decoder(nn.Module):
    """`language_model.model`: from embeddings to the normed final retrieval.

    `depth` is what layers retrieve from; another class may be set in its place.
    """

    def __init__(self, config: TextConfig, dtype: torch.dtype, experts: str) -> None:
        super().__init__()
        D, eps = config.hidden_size, float(config.rms_norm_eps)
        self.eps = eps
        self.embed_tokens = nn.Embedding(
            config.vocab_size, D, padding_idx=config.pad_token_id, dtype=dtype
        )
        self.num_layers = config.num_hidden_layers
        self.depth = Depth
        self.layers = nn.ModuleList(
            Layer(config, i, dtype, experts) for i in range(self.num_layers)
        )
        for _ in range(config.num_nextn_predict_layers):
            self.layers.append(MTP(config, dtype, experts))
        self.output_attn_res_norm = RMSNorm(D, eps, dtype)
        self.output_attn_res_proj = linear(D, 1, dtype)
        self.norm = RMSNorm(D, eps, dtype)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        caches: list[Cache] | None,
        lens: tuple[int, ...] | None,
        taps: Taps | None,
    ) -> Float[Tensor, "B T D"]:
        """Run embeddings through all layers."""
        depth = self.depth(prefix=x, eps=self.eps)
        for i, layer in enumerate(self.layers[: self.num_layers]):
            layer(depth, x.dtype, caches[i] if caches else None, lens, taps)
        last = depth.retrieve(
            self.output_attn_res_norm, self.output_attn_res_proj, x.dtype
        )
        record(taps, "output_attn_res", last)
        return self.norm(last)


class LanguageModel(nn.Module):
    """`language_model`: the decoder and its untied head."""

    def __init__(self, config: TextConfig, dtype: torch.dtype, experts: str) -> None:
        super().__init__()
        self.model = Decoder(config, dtype, experts)
        self.lm_head = linear(config.hidden_size, config.vocab_size, dtype)

    def embed(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Look the embeddings up; there is no scale."""
        return self.model.embed_tokens(ids)
