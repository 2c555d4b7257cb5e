"""Rows of several documents: what goes where."""

import pytest
import torch

from k3.data.examples import Example
from k3.data.packing import PADDING, concatenate, pack
from k3.errors import ShapeError

PAD = 99


def example(*ids, domain="a", masked=(), images=0):
    learned = torch.ones(len(ids), dtype=torch.bool)
    learned[[0, *masked]] = False
    pixels = torch.arange(images * 12.0).view(images, 3, 2, 2) if images else None
    grids = torch.tensor([[1, 1, images]]) if images else None
    return Example(
        ids=torch.tensor(ids),
        learned=learned,
        domain=domain,
        pixels=pixels,
        grids=grids,
    )


def test_targets_are_the_next_ids_and_flags_go_with_them():
    row = pack([example(1, 2, 3, 4, masked=[2]), example(5, 6, domain="b")], 8, PAD)
    assert row.ids.tolist() == [[1, 2, 3, 4, 5, 6, PAD, PAD]]
    assert row.targets.tolist() == [[2, 3, 4, PAD, 6, PAD, PAD, PAD]]
    assert row.learned.tolist() == [[True, False, True, False, True, *[False] * 3]]
    assert row.domains.tolist() == [[0, 0, 0, 0, 1, 1, PADDING, PADDING]]
    assert row.cu_seqlens.tolist() == [0, 4, 6, 8]
    assert row.real.tolist() == [[True] * 6 + [False] * 2]
    assert len(row) == 8
    assert row.pixels is row.grids is None


def test_a_full_row_has_no_padding():
    row = pack([example(1, 2), example(3)], 3, PAD)
    assert row.cu_seqlens.tolist() == [0, 2, 3]
    assert row.real.all()


def test_an_empty_row_is_padding():
    row = pack([], 3, PAD)
    assert row.ids.tolist() == [[PAD] * 3]
    assert row.cu_seqlens.tolist() == [0, 3]
    assert not row.learned.any()
    assert not row.real.any()


def test_named_domains_have_their_numbers():
    row = pack([example(1, domain="b")], 1, PAD, ("a", "b"))
    assert row.domains.tolist() == [[1]]
    with pytest.raises(ShapeError, match="got 'c' beside 2 names"):
        pack([example(1, domain="c")], 1, PAD, ("a", "b"))


@pytest.mark.parametrize("tokens", [0, 2])
def test_what_does_not_fit_is_refused(tokens):
    with pytest.raises(ShapeError, match=f"got 3 tokens for {tokens}"):
        pack([example(1, 2), example(3)], tokens, PAD)


def test_rows_join_into_one_with_all_boundaries():
    rows = [
        pack([example(1, 2, images=2)], 3, PAD, ("a", "b")),
        pack([example(3, domain="b")], 1, PAD, ("a", "b")),
        pack([example(4, 5, images=1), example(6)], 3, PAD, ("a", "b")),
    ]
    one = concatenate(rows)
    assert one.ids.tolist() == [[1, 2, PAD, 3, 4, 5, 6]]
    assert one.cu_seqlens.tolist() == [0, 2, 3, 4, 6, 7]
    assert one.domains.tolist() == [[0, 0, PADDING, 1, 0, 0, 0]]
    assert torch.equal(one.targets, torch.cat([row.targets for row in rows], 1))
    assert torch.equal(one.learned, torch.cat([row.learned for row in rows], 1))
    assert torch.equal(one.pixels, torch.cat([rows[0].pixels, rows[2].pixels]))
    assert one.grids.tolist() == [[1, 1, 2], [1, 1, 1]]


def test_no_rows_are_no_batch():
    with pytest.raises(ShapeError, match="at least one row"):
        concatenate([])
