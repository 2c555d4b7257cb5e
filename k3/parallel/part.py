"""A rank's part of a packed row, for a model that `context.split` was given."""

from dataclasses import replace

import torch
from torch import Tensor

from k3.config import K3Config
from k3.data.packing import Row
from k3.errors import ShapeError
from k3.parallel import share
from k3.parallel.ranks import Axis


def part(row: Row, axis: Axis, config: K3Config) -> Row:
    """Return this rank's tokens of a row and their pictures; bounds stay the row's.

    Raises: ShapeError where a picture lies across two ranks.
    """
    if axis.size == 1:
        return row
    edges = share.bounds(len(row), axis.size)
    start, stop = edges[axis.rank], edges[axis.rank + 1]
    here = slice(start, stop)
    pixels, grids = _pictures(row, config, start, stop)
    return replace(
        row,
        ids=row.ids[:, here],
        targets=row.targets[:, here],
        learned=row.learned[:, here],
        domains=row.domains[:, here],
        pixels=pixels,
        grids=grids,
    )


def _pictures(
    row: Row, config: K3Config, start: int, stop: int
) -> tuple[Tensor | None, Tensor | None]:
    """The patches and grids of what lies within start .. stop."""
    if row.pixels is None or row.grids is None or config.vision is None:
        return None, None
    across, down = config.vision.merge_kernel_size
    token = config.media_placeholder_token_id
    placed = row.ids[0].eq(-1 if token is None else token).nonzero()[:, 0]
    patches = row.grids.prod(1).tolist()
    each = [h * w // (across * down) for _, h, w in row.grids.tolist()]
    mine = []
    for number, places in enumerate(placed.split(each)):
        first, last = int(places[0]), int(places[-1])
        if first < start <= last or first < stop <= last:
            raise ShapeError(
                "a picture must lie on one context rank: got picture "
                f"{number} at tokens {first} .. {last}, cut at {start} or {stop}; "
                "pack it elsewhere or lower context"
            )
        if start <= first < stop:
            mine.append(number)
    if not mine:
        return None, None
    pixels = row.pixels.split(patches)
    return torch.cat([pixels[n] for n in mine]), row.grids[mine]
