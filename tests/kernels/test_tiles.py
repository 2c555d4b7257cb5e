"""Every token has one slot, every slot of padding reads the appended row."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from k3.kernels import tiles

CPU = torch.device("cpu")


@given(lens=st.lists(st.integers(0, 50), max_size=6), size=st.sampled_from([1, 3, 16]))
def test_layout(lens, size):
    layout = tiles.tile(tuple(lens), size, CPU)
    total, flat = sum(lens), layout.rows.flatten()
    assert torch.equal(flat[layout.slots], torch.arange(total))
    assert int((flat < total).sum()) == total
    assert sum(layout.alive) == layout.rows.shape[0] == sum(-(-n // size) for n in lens)
    assert list(layout.alive) == sorted(layout.alive, reverse=True)
    assert torch.equal(layout.order[layout.inverse], torch.arange(len(lens)))
    assert layout.whole == torch.equal(flat, torch.arange(total))


@given(lens=st.lists(st.integers(0, 50), min_size=1, max_size=6))
def test_a_tile_holds_one_sequence_and_steps_are_in_order(lens):
    layout = tiles.tile(tuple(lens), 16, CPU)
    owner = torch.repeat_interleave(torch.arange(len(lens)), torch.tensor(lens))
    ends = torch.tensor(lens).cumsum(0)
    seen = torch.zeros(len(lens), dtype=torch.int64)
    start = 0
    for n in layout.alive:
        for i, row in enumerate(layout.rows[start : start + n]):
            tokens = row[row < sum(lens)]
            (sequence,) = set(owner[tokens].tolist())
            assert sequence == layout.order[i]
            first = ends[sequence] - lens[sequence] + seen[sequence]
            assert tokens[0] == first
            seen[sequence] += len(tokens)
        start += n
    assert seen.tolist() == lens
