"""The two building blocks without a concept of their own: Linear and RMSNorm."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from k3.kernels import norm


def linear(in_features: int, out_features: int, dtype: torch.dtype) -> nn.Linear:
    """Return a bias-free projection; K3 has no bias on any of them."""
    return nn.Linear(in_features, out_features, bias=False, dtype=dtype)


class RMSNorm(nn.Module):
    """RMSNorm with a learned weight; see kernels.norm.rms_norm."""

    def __init__(self, dim: int, eps: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim, dtype=dtype))

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalize the last dim of x."""
        return norm.rms_norm(x, self.weight, self.eps)
