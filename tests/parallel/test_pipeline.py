"""Stages that pass depth blocks give the losses and gradients of one process."""

import functools

import pytest
import step_on_ranks
from test_fsdp import one, same

from k3.parallel import Mesh


@pytest.mark.parametrize(
    ("kind", "virtual", "sent"),
    [("gpipe", 1, 3), ("1f1b", 1, 3), ("1f1b", 3, 7)],
)
def test_two_stages_have_the_gradients_of_one_process(two, kind, virtual, sent):
    """4 + 3 layers, blocks of 3: two blocks and the sum cross, and their gradients.

    Six chunks cross five times: with 1 + 0 + 1 + 0 + 0 blocks, not 1 + 1 + 2 + 2 + 2.
    """
    step = functools.partial(step_on_ranks.step, kind=kind, virtual=virtual)
    got = two(Mesh(pipeline=2), step)
    same(got, one())
    vector = 4 * 29 * 26 * 4  # rows, tokens, width, bytes
    assert [g[3] for g in got] == [sent * vector] * 2


@pytest.mark.slow
@pytest.mark.parametrize("virtual", [1, 2])
def test_stages_of_shards_have_the_gradients_of_one_process(four, virtual):
    step = functools.partial(step_on_ranks.step, virtual=virtual)
    same(four(Mesh(pipeline=2, data=2), step), one())
