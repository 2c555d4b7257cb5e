"""The building blocks without a concept of their own: projections and RMSNorm."""

from itertools import repeat
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from k3.kernels import choose, norm
from k3.kernels.native import gemm, product
from k3.model.stored import StoredLinear

FEW = 16
"""Rows up to which weights are what a product waits for."""


def linear(in_features: int, out_features: int, dtype: torch.dtype) -> nn.Linear:
    """Return a bias-free projection; K3 has no bias on any of them."""
    return nn.Linear(in_features, out_features, bias=False, dtype=dtype)


SMALL = 65536
"""Numbers of a matrix in fp32 below which a call costs more than its product."""


class Projection(nn.Linear):
    """A Linear that reads its weights once for few rows, where nothing is recorded.

    A row's bits then depend on how many there are. That is no matter to a draft, whose
    proposals are verified.
    """

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        """Return x W^T."""
        few = 0 < x.numel() <= FEW * self.in_features
        if not few or x.dtype != self.weight.dtype or not _unseen(x, self.weight):
            return super().forward(x)
        out = product.product(x.reshape(-1, self.in_features), self.weight)
        return out.view(*x.shape[:-1], self.out_features)


def project_(module: nn.Module) -> None:
    """Let every Linear within be a Projection, under its name and with its weight."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Linear:
                with torch.device("meta"):
                    made = Projection(child.in_features, child.out_features, bias=False)
                made.weight = child.weight
                setattr(parent, name, made)


def project(
    x: Float[Tensor, "*B D"], *layers: nn.Module
) -> tuple[Float[Tensor, "*B _"], ...]:
    """Return what each of some projections makes of x.

    Rows in fp32 go through one native call, which packs them once for all; the modules
    run where one of them is not just its weight, or something looks at it.
    """
    if not all(map(_is_weight, layers)) or _has_any_global_hook():
        return tuple(layer(x) for layer in layers)
    weights = [cast(Tensor, layer.weight) for layer in layers]
    if not all(map(_fits, layers, repeat(x))) or not choose.packs(x, *weights):
        return tuple(layer(x) for layer in layers)
    outs = gemm.products(x.reshape(-1, x.shape[-1]), weights)
    return tuple(out.view(*x.shape[:-1], -1) for out in outs)


def _fits(layer: nn.Module, x: Tensor) -> bool:
    """Whether the native product and the module make the same of x."""
    weight = cast(Tensor, layer.weight)
    return weight.dtype == x.dtype or type(layer) is StoredLinear


def _is_weight(layer: nn.Module) -> bool:
    """Whether a module does nothing but multiply by its weight, unwatched."""
    return (
        type(layer) in (nn.Linear, Projection, StoredLinear)
        and layer.bias is None
        and not (layer._forward_hooks or layer._forward_pre_hooks)
        and "forward" not in vars(layer)
    )


def _unseen(x: Tensor, weight: Tensor) -> bool:
    """Whether the native product is the faster one and nobody needs to see it."""
    if weight.dtype == torch.float32 and weight.numel() < SMALL:
        return False
    if torch.is_autocast_enabled("cpu") or choose.recorded(x, weight):
        return False
    return choose.native(x, weight)


class RMSNorm(nn.Module):
    """RMSNorm with a learned weight; see kernels.norm.rms_norm."""

    def __init__(self, dim: int, eps: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim, dtype=dtype))

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalize the last dim of x."""
        return norm.rms_norm(x, self.weight, self.eps)
