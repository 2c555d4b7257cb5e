"""The attention of an EAGLE-3 draft, and its unrolled form for training."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from k3.config import TextConfig
from k3.model.linear import linear
from k3.model.mla import MLA

Pair = tuple[Tensor, Tensor]
"""Keys and values of every head."""


class DraftAttention(MLA):
    """Eq. 7 in a draft: the past as the target saw it, then the draft's own steps.

    It reads vectors of `width`, which need not be the residual's.
    """

    def __init__(self, config: TextConfig, dtype: torch.dtype, width: int) -> None:
        super().__init__(config, dtype)
        if width != config.hidden_size:
            for name in ("q_a_proj", "kv_a_proj_with_mqa", "g_proj"):
                rows = getattr(self, name).weight.shape[0]
                setattr(self, name, linear(width, rows, dtype))

    def extend(
        self,
        x: Float[Tensor, "B T width"],
        past: list[Pair],
        seen: Bool[Tensor, "T T"],
    ) -> Float[Tensor, "B T D"]:
        """Attend at every position to `past[0]` before it and to the steps from it.

        `seen[t, s]` says whether t sees s in the first step; each later step is seen
        from its own position alone. Appends the keys and values of x to `past`.
        """
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B H T dim]
        past.append(self._keys_and_values(self._rows(self.kv_a_proj_with_mqa(x))))
        (k, v), steps = past[0], past[1:]
        scores = (q @ k.mT).masked_fill(~seen, -torch.inf)
        own = [(q * key).sum(-1, keepdim=True) for key, _ in steps]
        weights = torch.cat([scores, *own], -1).float() * self.scale
        weights = weights.softmax(-1).to(v.dtype)
        T = x.shape[1]
        out = weights[..., :T] @ v
        for n, (_, value) in enumerate(steps):
            out = out + weights[..., T + n, None] * value
        out = out.transpose(1, 2).flatten(2)
        return self.o_proj((out * torch.sigmoid(self.g_proj(x).float())).to(x.dtype))
