"""What is computed wider than the activations: never narrower than fp32."""

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """Return x in fp32, or unchanged where it is already fp32 or fp64."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()
