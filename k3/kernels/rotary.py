"""The vision tower's two-dimensional rotary positions."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import precision

BASE = 10000.0


def angles(
    grid: tuple[int, int, int], dim: int, device: torch.device
) -> Float[Tensor, "N half"]:
    """Turn of each complex pair of a head: even pairs by column, odd ones by row.

    Pair 2i turns by column * 10000^(-4i / dim), pair 2i+1 by row * the same, in
    raster order, the same in every frame.
    """
    t, h, w = grid
    rates = BASE ** (-4 * torch.arange(dim // 4, dtype=torch.float64) / dim)
    column = torch.arange(w)[:, None] * rates
    row = torch.arange(h)[:, None] * rates
    pairs = torch.stack(
        [column.expand(h, w, -1), row[:, None].expand(h, w, -1)], -1
    ).flatten(2)
    return pairs.flatten(0, 1).repeat(t, 1).to(device)


def rotate(
    x: Float[Tensor, "B H N dim"], turn: Float[Tensor, "N half"]
) -> Float[Tensor, "B H N dim"]:
    """Rotate adjacent channel pairs of x by `turn`, in fp32 or wider."""
    pairs = precision.wide(x).unflatten(-1, (-1, 2))
    cos, sin = turn.cos().to(pairs.dtype), turn.sin().to(pairs.dtype)
    a, b = pairs.unbind(-1)
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1)
    return turned.flatten(-2).to(x.dtype)
