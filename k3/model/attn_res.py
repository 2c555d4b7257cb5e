"""Depth: the completed blocks and the running sum that sublayers retrieve from."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from k3.kernels import attn_res, precision
from k3.model.linear import RMSNorm


@dataclass(slots=True)
class Depth:
    """Eq. 8-10: what one token has behind it; nothing of it outlives the pass.

    `prefix` is the sum since the last completed block, None just after one.
    """

    prefix: Tensor | None
    eps: float
    blocks: Tensor | None = field(default=None, init=False)
    scale: Tensor | None = field(default=None, init=False)

    def commit(self) -> None:
        """Complete the running sum into a block; the next sum starts empty."""
        assert self.prefix is not None
        block = precision.wide(self.prefix).unsqueeze(-2)
        scale = attn_res.inverse_rms(block, self.eps)
        if self.blocks is None or self.scale is None:
            self.blocks, self.scale = block, scale
        else:
            self.blocks = torch.cat([self.blocks, block], -2)
            self.scale = torch.cat([self.scale, scale], -1)
        self.prefix = None

    def add(self, y: Float[Tensor, "B T D"]) -> None:
        """Add a sublayer's output to the running sum."""
        self.prefix = y if self.prefix is None else self.prefix + y

    def retrieve(
        self, norm: RMSNorm, proj: nn.Linear, dtype: torch.dtype
    ) -> Float[Tensor, "B T D"]:
        """Mix the sources by the query of a sublayer, or return the embedding."""
        if self.blocks is None or self.scale is None:
            assert self.prefix is not None
            return self.prefix
        query = attn_res.fold_query(norm.weight, proj.weight)
        prefix = None if self.prefix is None else precision.wide(self.prefix)
        mixed = attn_res.mix(self.blocks, self.scale, prefix, query, self.eps)
        return mixed.to(dtype)
