"""Parameters that stay in fp32 when the rest of the model is cast below it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

_NARROW = (torch.bfloat16, torch.float16)


class KeepsFloat32(nn.Module):
    """A module whose own parameters and buffers named in `fp32` are never narrowed.

    `model.to(torch.bfloat16)` casts everything else; a later upcast could not
    restore the lost bits of a router bias or a decay rate.
    """

    fp32: tuple[str, ...] = ()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        kept = {name: getattr(self, name).detach() for name in self.fp32}
        super()._apply(fn, recurse)
        for name, before in kept.items():
            now = getattr(self, name)
            if now.dtype in _NARROW:
                now.data = before.to(now.device, torch.float32)
            if now.grad is not None and now.grad.dtype != now.dtype:
                now.grad = now.grad.to(now.dtype)
        return self


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of fp32 parameters in a model of this dtype."""
    return torch.float32 if dtype in _NARROW else dtype
