"""EAGLE-3: a draft of one decoder layer that reads the features of its target.

It begins as the MTP layer did: what that layer read as `hidden` is here the fused
features of three blocks, or the draft's own output where the target has not been.
"""

from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from k3.config.draft import DraftConfig
from k3.errors import CheckpointError, RequestError
from k3.model import Model
from k3.model.cache import MLACache
from k3.model.draft_attention import DraftAttention, Pair
from k3.model.linear import RMSNorm, linear, project_
from k3.model.mlp import MLP
from k3.model.moe import MoE
from k3.model.mtp import MTP, SharedHead
from k3.model.taps import Taps


class Draft(nn.Module):
    """EAGLE-3: embedding and feature in, hidden state and logits of the draft out.

    x = eh_proj [enorm(e) | hnorm(feature)], then MLA and a feed-forward with plain
    sums; the sum is the next feature. Names are those of the MTP layer, with `fc` for
    the fusion [low middle high] and, where it has fewer tokens than its target, the
    table `d2t`: draft id i is target id i + d2t[i]. In the fused layout x is the
    feature and MLA reads [input_layernorm(e) | hidden_norm(feature)].
    """

    d2t: Int[Tensor, " draft_W"]

    def __init__(self, config: DraftConfig, dtype: torch.dtype) -> None:
        super().__init__()
        text, self.config = config.text, config
        D, eps = text.hidden_size, float(text.rms_norm_eps)
        self.embed_tokens = nn.Embedding(
            text.vocab_size, D, padding_idx=text.pad_token_id, dtype=dtype
        )
        self.fc = linear(3 * D, D, dtype)
        self.fused = config.layout == "fused"
        if self.fused:
            self.hidden_norm = RMSNorm(D, eps, dtype)
        else:
            self.enorm, self.hnorm = RMSNorm(D, eps, dtype), RMSNorm(D, eps, dtype)
            self.eh_proj = linear(2 * D, D, dtype)
        self.input_layernorm = RMSNorm(D, eps, dtype)
        self.self_attn = DraftAttention(text, dtype, 2 * D if self.fused else D)
        self.post_attention_layernorm = RMSNorm(D, eps, dtype)
        if config.experts:
            self.block_sparse_moe = MoE(text, dtype, "dequantized")
        else:
            self.mlp = MLP(text, text.intermediate_size, dtype)
        self.shared_head = SharedHead(text, dtype)
        if config.vocab_size != text.vocab_size:
            self.shared_head.head = linear(D, config.vocab_size, dtype)
        self.register_buffer("d2t", torch.zeros(config.vocab_size, dtype=torch.int64))
        project_(self)

    @torch.no_grad()
    def start_(self, target: Model, seed: int = 0) -> "Draft":
        """Begin where the target's MTP layer ended, or at its embedding and head.

        W_E3 = [0 0 I]: the fused feature is that of the final block. Returns self. A
        fused draft takes the embedding and head: its layer reads another input.
        Raises: RequestError for a target of other sizes.
        """
        text = target.config.text
        if (text.hidden_size, text.vocab_size) != (
            self.config.text.hidden_size,
            self.config.text.vocab_size,
        ):
            raise RequestError(
                "a draft has the width and tokens of its target: got "
                f"{self.config.text.hidden_size} and {self.config.text.vocab_size} for "
                f"{text.hidden_size} and {text.vocab_size}; make its config from the "
                "target's"
            )
        generator = torch.Generator(self.fc.weight.device).manual_seed(seed)
        std = float(self.config.text.initializer_range)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=std, generator=generator)
        D = text.hidden_size
        self.fc.weight.zero_()
        self.fc.weight[:, 2 * D :] = torch.eye(D)
        layers = target.language_model.model.layers
        if text.num_nextn_predict_layers and not self.fused:
            self._copy(cast(MTP, layers[text.num_hidden_layers]))
        else:
            self.embed_tokens.weight.copy_(
                target.language_model.model.embed_tokens.weight
            )
            self.shared_head.norm.weight.copy_(target.language_model.model.norm.weight)
            head = target.language_model.lm_head.weight
            self.shared_head.head.weight.copy_(head[self.target_ids()])
        return self

    def target_ids(self) -> Int[Tensor, " draft_W"]:
        """The target's id of each of the draft's."""
        return torch.arange(len(self.d2t), device=self.d2t.device) + self.d2t

    def fuse(self, features: Float[Tensor, "B T three_D"]) -> Float[Tensor, "B T D"]:
        """W_E3 [low middle high], without bias."""
        return self.fc(features)

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        feature: Float[Tensor, "B T D"],
        cache: MLACache | None = None,
        lens: tuple[int, ...] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Hidden [B T D] and logits [B T draft_W] of the token after each of `ids`.

        `feature` led to `ids`: the fused features of the position before, or the
        hidden state that the last step returned.
        """
        hidden = self.advance(ids, feature, cache, lens)
        return hidden, self.shared_head(hidden)

    def advance(
        self,
        ids: Int[Tensor, "B T"],
        feature: Float[Tensor, "B T D"],
        cache: MLACache | None = None,
        lens: tuple[int, ...] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Hidden states alone: of a long context few are asked for logits."""
        x, read = self._enter(ids, feature)
        return self._leave(x + self.self_attn(read, cache, lens))

    def unroll(
        self,
        ids: Int[Tensor, "B T"],
        features: Float[Tensor, "B T three_D"],
        lens: tuple[int, ...],
        steps: int,
    ) -> list[Float[Tensor, "B T draft_W"]]:
        """Training-time test: logits of `steps` positions ahead, on its own outputs.

        Step j at t reads token t + 1 + j and what step j - 1 made there, and sees the
        first step up to t; sequences of `lens` do not see each other. Where a sequence
        ends before t + 1 + j the result has no meaning.
        """
        seen, past = _seen(lens, ids.device), list[Pair]()
        feature, made = self.fuse(features), []
        for j in range(steps):
            x, read = self._enter(ids.roll(-1 - j, -1), feature)
            feature = self._leave(x + self.self_attn.extend(read, past, seen))
            made.append(self.shared_head(feature))
        return made

    def init_cache(self, sequences: int) -> MLACache:
        """Return the empty rows of so many sequences."""
        return self.self_attn.init_cache(sequences, self.fc.weight)

    def check_table(self) -> None:
        """Refuse a table that leaves the target's tokens or names one twice.

        Raises: CheckpointError.
        """
        ids, most = self.target_ids(), self.config.text.vocab_size
        if len(ids.unique()) != len(ids) or not bool(((ids >= 0) & (ids < most)).all()):
            raise CheckpointError(
                "d2t holds offsets: draft id i is target id i + d2t[i], each from 0 to "
                f"{most - 1} and named once; got ids {ids.min()} to {ids.max()}, "
                f"{len(ids.unique())} different ones of {len(ids)}"
            )

    def _enter(self, ids: Tensor, feature: Tensor) -> tuple[Tensor, Tensor]:
        """Return the residual that the layer adds to, and what its attention reads."""
        e = self.embed_tokens(ids)
        if self.fused:
            both = self.input_layernorm(e), self.hidden_norm(feature)
            return feature, torch.cat(both, -1)
        x = self.eh_proj(torch.cat([self.enorm(e), self.hnorm(feature)], -1))
        return x, self.input_layernorm(x)

    def _leave(self, x: Tensor) -> Tensor:
        normed = self.post_attention_layernorm(x)
        if self.config.experts:
            return x + self.block_sparse_moe(normed)
        return x + self.mlp(normed)

    def _copy(self, mtp: MTP) -> None:
        """Take over all that the MTP layer has under the same name and shape."""
        own, rows = dict(self.named_parameters()), self.target_ids()
        for name, value in mtp.named_parameters():
            head = name == "shared_head.head.weight"
            taken = value[rows] if head else value
            if name in own and own[name].shape == taken.shape:
                own[name].copy_(taken)


def features(taps: Taps, layers: tuple[int, ...]) -> Float[Tensor, "B T F"]:
    """The running sums behind these layers side by side, of a pass that filled taps."""
    return torch.cat([taps[f"layers.{i}.out_prefix"] for i in layers], -1)


def _seen(lens: tuple[int, ...], device: torch.device) -> Bool[Tensor, "T T"]:
    """Whether position t sees position s: the same sequence, and not after t."""
    segment = torch.repeat_interleave(
        torch.arange(len(lens), device=device), torch.tensor(lens, device=device)
    )
    same = segment[:, None] == segment[None, :]
    return same & torch.ones_like(same).tril()
