"""How packed sequences are cut into tiles of a fixed number of tokens."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Tiles:
    """A layout of tokens in tiles, ordered by step and, in a step, by sequence.

    Step t holds tile t of every sequence that still has one. Sequences are
    ordered by falling number of tiles, so those alive in a step are a prefix.
    """

    rows: Int[Tensor, "N C"]
    """Token of each tile slot; the number of tokens where the slot is padding."""
    slots: Int[Tensor, " T"]
    """Tile slot of each token."""
    order: Int[Tensor, " S"]
    """Sequences by falling number of tiles."""
    inverse: Int[Tensor, " S"]
    """Where each sequence went."""
    alive: tuple[int, ...]
    """Sequences alive in each step."""
    whole: bool
    """True where tiles are the tokens themselves, in order and without padding."""


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def tile(lens: tuple[int, ...], size: int, device: torch.device) -> Tiles:
    """Lay sequences of these lengths out in tiles of `size` tokens.

    A layout outlives the call, so it is never made of inference tensors, which a
    backward pass could not save.
    """
    counts = [-(-n // size) for n in lens]
    order = sorted(range(len(lens)), key=lambda s: -counts[s])
    starts = [sum(lens[:s]) for s in range(len(lens))]
    steps = max(counts, default=0)
    alive = tuple(sum(c > t for c in counts) for t in range(steps))
    total = sum(lens)
    first, size_of = [], []
    for t, n in enumerate(alive):
        first += [starts[s] + t * size for s in order[:n]]
        size_of += [lens[s] - t * size for s in order[:n]]
    offset = torch.arange(size)
    base = torch.tensor(first, dtype=torch.int64)[:, None]
    left = torch.tensor(size_of, dtype=torch.int64)[:, None]
    rows = torch.where(offset < left, base + offset, total)
    flat = rows.flatten()
    slots = torch.zeros(total + 1, dtype=torch.int64)
    slots[flat] = torch.arange(len(flat))
    by_length = torch.tensor(order, dtype=torch.int64)
    return Tiles(
        rows=rows.to(device),
        slots=slots[:total].to(device),
        order=by_length.to(device),
        inverse=torch.argsort(by_length).to(device),
        alive=alive,
        whole=bool(torch.equal(flat, torch.arange(total))),
    )
