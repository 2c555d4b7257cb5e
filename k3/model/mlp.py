"""The dense feed-forward: layer 0, and the shared experts."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from k3.config import TextConfig
from k3.kernels import situ
from k3.model.linear import linear, project


class MLP(nn.Module):
    """down(SiTU(gate x, up x))."""

    def __init__(self, config: TextConfig, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.beta = float(config.activation_situ_beta)
        self.linear_beta = float(config.activation_situ_linear_beta)
        self.gate_proj = linear(config.hidden_size, width, dtype)
        self.up_proj = linear(config.hidden_size, width, dtype)
        self.down_proj = linear(width, config.hidden_size, dtype)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Eq. 12 between two projections and a third."""
        gate, up = project(x, self.gate_proj, self.up_proj)
        hidden = situ.situ(gate, up, self.beta, self.linear_beta)
        return project(hidden, self.down_proj)[0]
