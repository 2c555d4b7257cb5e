"""Who else is in the batch: bitwise at fixed shapes, within 1e-4 across shapes."""

from pathlib import Path

import pytest
import torch

import k3

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_release"
LENGTH = 13


@pytest.fixture(scope="module")
def model():
    return k3.load(GOLDEN, dtype=torch.float32, experts="dequantized")


def ids(rows, seed, length=LENGTH):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 240, (rows, length), generator=generator)


def mine(model, batch, length=LENGTH):
    """Logits of row 0 in prefill and for one more token."""
    state = model.init_state(len(batch))
    with torch.no_grad():
        prefill, state = model(batch[:, :length], state=state)
        step, state = model.step(batch[:, -1:], state)
    return torch.cat([prefill[0], step[0]])


@pytest.mark.parametrize("repeat", range(5))
def test_report_70_a_neighbour_of_other_content_changes_no_bit(model, repeat):
    batch = ids(8, seed=1)
    before = mine(model, batch)
    batch[1:] = ids(7, seed=100 + repeat)
    differ = int((mine(model, batch) != before).sum())
    assert differ == 0


@pytest.mark.parametrize("repeat", range(5))
def test_report_70_alone_and_in_a_batch_of_eight_differ_below_1e_4(model, repeat):
    batch = ids(8, seed=10 + repeat)
    gap = (mine(model, batch) - mine(model, batch[:1])).abs().max()
    assert gap < 1e-4


@pytest.mark.parametrize("repeat", range(5))
def test_report_70_one_and_four_query_rows_differ_below_1e_4(model, repeat):
    row = ids(1, seed=20 + repeat)
    with torch.no_grad():
        state = model.init_state(1)
        _, state = model(row[:, :-4], state=state)
        single = state.fork()
        four, _ = model(row[:, -4:], state=state)
        ones = []
        for position in range(LENGTH - 4, LENGTH):
            logits, single = model.step(row[:, position : position + 1], single)
            ones.append(logits)
    assert (torch.cat(ones, 1) - four).abs().max() < 1e-4


def test_report_85_rows_that_have_ended_do_not_reach_the_others(model):
    """A padded row holds any token: the live row's logits keep every bit."""
    state = model.init_state(2)
    batch = ids(2, seed=3)
    with torch.no_grad():
        _, state = model(batch, state=state)
        first, _ = model.step(torch.tensor([[7], [0]]), state.fork())
        other, _ = model.step(torch.tensor([[7], [239]]), state.fork())
    assert torch.equal(first[0], other[0])
    assert not torch.equal(first[1], other[1])
