"""RMSNorm and L2 normalization, computed in fp32 or wider."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from k3.kernels import choose, precision
from k3.kernels.native import norm as native


def rms_norm(
    x: Float[Tensor, "*B D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*B D"]:
    """RMSNorm: weight * x / sqrt(mean(x^2) + eps), rounded before the weight.

    The normalized value goes back to the dtype of x before it meets the weight,
    as in the released model; the result has the wider dtype of the two.
    Matches: spec.norm.rms_norm.
    """
    if choose.operation(x, weight) and not choose.recorded(x, weight):
        return native.rms_norm(x, weight, eps)
    if x.dtype == weight.dtype and x.dtype in (torch.float32, torch.float64):
        return F.rms_norm(x, x.shape[-1:], weight, eps)
    wide = precision.wide(x)
    return F.rms_norm(wide, x.shape[-1:], None, eps).to(x.dtype) * weight


def l2_norm(x: Float[Tensor, "*B K"], eps: float = 1e-6) -> Float[Tensor, "*B K"]:
    """L2 norm of section 2.1.1: x / sqrt(sum(x^2) + eps); zero stays zero."""
    wide = precision.wide(x)
    return wide * torch.rsqrt(wide.square().sum(-1, keepdim=True) + eps)
