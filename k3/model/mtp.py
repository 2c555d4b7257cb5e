"""The multi-token-prediction layer: one more token ahead, from the same trunk."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from k3.config import TextConfig
from k3.model.linear import RMSNorm, linear
from k3.model.mla import MLA
from k3.model.moe import MoE
from k3.model.taps import Taps


class SharedHead(nn.Module):
    """The norm and vocabulary head of the MTP layer."""

    def __init__(self, config: TextConfig, dtype: torch.dtype) -> None:
        super().__init__()
        D, eps = config.hidden_size, float(config.rms_norm_eps)
        self.norm = RMSNorm(D, eps, dtype)
        self.head = linear(D, config.vocab_size, dtype)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T W"]:
        """Return logits."""
        return self.head(self.norm(x))


class MTP(nn.Module):
    """x = eh_proj[enorm(embedding) | hnorm(hidden)], then MLA and MoE, plain sums.

    Depth retrieval is off in this layer. `hidden` is the trunk's last retrieval,
    before its final norm; the embedding is zeroed at position 0.
    """

    def __init__(self, config: TextConfig, dtype: torch.dtype, experts: str) -> None:
        super().__init__()
        D, eps = config.hidden_size, float(config.rms_norm_eps)
        self.enorm, self.hnorm = RMSNorm(D, eps, dtype), RMSNorm(D, eps, dtype)
        self.eh_proj = linear(2 * D, D, dtype)
        self.embed_tokens = nn.Embedding(
            config.vocab_size, D, padding_idx=config.pad_token_id, dtype=dtype
        )
        self.input_layernorm = RMSNorm(D, eps, dtype)
        self.self_attn = MLA(config, dtype)
        self.post_attention_layernorm = RMSNorm(D, eps, dtype)
        self.block_sparse_moe = MoE(config, dtype, experts)
        self.shared_head = SharedHead(config, dtype)

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        hidden: Float[Tensor, "B T D"],
        lens: tuple[int, ...] | None = None,
        taps: Taps | None = None,
    ) -> Float[Tensor, "B T W"]:
        """Logits of the token after `ids`, where `hidden` led to `ids`.

        With `lens` the rows are packed sequences (B = 1), each with a position 0.
        """
        e = self.embed_tokens(ids)
        e = e.masked_fill(_starts(ids, lens)[:, None], 0)
        x = self.eh_proj(torch.cat([self.enorm(e), self.hnorm(hidden)], -1))
        x = x + self.self_attn(self.input_layernorm(x), None, lens)
        normed = self.post_attention_layernorm(x)
        x = x + self.block_sparse_moe(normed, taps, "mtp.block_sparse_moe")
        return self.shared_head(x)


def _starts(
    ids: Int[Tensor, "B T"], lens: tuple[int, ...] | None
) -> Bool[Tensor, " T"]:
    """True at position 0 of every sequence."""
    starts = torch.zeros(ids.shape[1], dtype=torch.bool, device=ids.device)
    place = 0
    for length in lens or (ids.shape[1],):
        if length:
            starts[place] = True
        place += length
    return starts
