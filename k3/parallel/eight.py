"""A tensor in 8 bits: blocks of 128 numbers in E4M3 with one fp32 scale."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 128
LARGEST = 448.0
"""Of E4M3, to which a block's largest number goes."""

RELATIVE = 2.0**-4
SMALLEST = 2.0**-10 / LARGEST
"""|x - decode(encode(x))| <= max(RELATIVE |x|, SMALLEST max of its block)."""


@dataclass(frozen=True, slots=True, eq=False)
class Eight:
    """Codes [n BLOCK] and scales [n 1] of a tensor of some shape and dtype."""

    codes: Tensor
    scales: Tensor
    shape: torch.Size
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """About a byte and a thirtieth a number."""
        return self.codes.nbytes + self.scales.nbytes


def encode(x: Tensor) -> Eight:
    """Round a tensor of floats; a block with a number that is not finite is NaN."""
    flat = x.detach().flatten().float()
    blocks = F.pad(flat, (0, -len(flat) % BLOCK)).view(-1, BLOCK)
    scales = blocks.abs().amax(1, keepdim=True) / LARGEST
    # Below this a quotient would leave fp32; such a block is all zero.
    codes = torch.where(scales < 1e-38, 0, blocks / scales.clamp_min(1e-38))
    return Eight(codes.to(torch.float8_e4m3fn), scales, x.shape, x.dtype)


def decode(held: Eight) -> Tensor:
    """Return what `encode` has kept, in the shape and dtype that came."""
    flat = (held.codes.float() * held.scales).flatten()
    return flat[: held.shape.numel()].view(held.shape).to(held.dtype)
