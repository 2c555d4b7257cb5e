"""Parts of a packed row: every token once, pictures with their placeholders."""

import pytest
import small
import torch

from k3.data.packing import Row
from k3.errors import ShapeError
from k3.parallel.part import part
from k3.parallel.ranks import Axis

CONFIG = small.config(vision={})


def row(pictures, tokens=30):
    """A row with pictures of 2 x 4 patches (two placeholders) at some tokens."""
    ids = small.ids(1, tokens)
    for at in pictures:
        ids[0, at : at + 2] = small.MEDIA
    count, side = len(pictures), CONFIG.vision.patch_size
    return Row(
        ids=ids,
        targets=ids + 1,
        learned=torch.ones(1, tokens, dtype=torch.bool),
        domains=torch.zeros(1, tokens, dtype=torch.uint8),
        cu_seqlens=torch.tensor([0, 7, tokens]),
        pixels=torch.arange(8.0 * count)[:, None, None, None].expand(-1, 3, side, side),
        grids=torch.tensor([[1, 2, 4]] * count).view(-1, 3),
    )


def parts(whole, ranks):
    return [part(whole, Axis(ranks, r), CONFIG) for r in range(ranks)]


def test_parts_are_the_row_in_order():
    whole = row([3, 12, 25])
    found = parts(whole, 3)
    for name in ("ids", "targets", "learned", "domains"):
        joined = torch.cat([getattr(p, name) for p in found], 1)
        assert torch.equal(joined, getattr(whole, name))
    assert all(torch.equal(p.cu_seqlens, whole.cu_seqlens) for p in found)
    for number, p in enumerate(found):
        assert p.grids.tolist() == [[1, 2, 4]]
        assert p.pixels[:, 0, 0, 0].tolist() == [8.0 * number + i for i in range(8)]


def test_a_part_without_pictures_has_none():
    first, second = parts(row([3]), 2)
    assert first.pixels is not None
    assert second.pixels is None
    assert second.grids is None


def test_one_rank_has_the_row_itself():
    whole = row([3])
    assert part(whole, Axis(), CONFIG) is whole


def test_a_picture_across_two_ranks_is_refused():
    with pytest.raises(
        ShapeError, match=r"got picture 0 at tokens 14 .. 15, cut at 0 or"
    ):
        parts(row([14]), 2)
