"""Chunks hold every layer once, and every rank gets every block once."""

import itertools

import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from k3 import recipes
from k3.errors import ConfigError
from k3.parallel import layout


def of(layers, stages, virtual=1):
    made = small.config(linear=small.schedule(layers), num_hidden_layers=layers)
    return layout.chunks(made.text, stages, virtual)


@given(st.sampled_from([8, 12, 20]), st.integers(1, 4), st.integers(1, 2))
def test_every_layer_stands_once_and_every_block_comes_once(layers, stages, virtual):
    parts = of(layers, stages, virtual)
    assert [i for c in parts for i in range(c.start, c.stop)] == list(range(layers))
    assert [c.first for c in parts] == [True, *[False] * (len(parts) - 1)]
    assert [c.last for c in parts] == [*[False] * (len(parts) - 1), True]
    for before, after in itertools.pairwise(parts):
        assert before.sent == after.received
        assert before.held + before.made == after.held
    for rank in range(stages):
        own = parts[rank::stages]
        had = 0
        for chunk in own:
            assert chunk.held - chunk.received == had
            had = chunk.held + chunk.made


def test_the_released_model_on_sixteen_stages_sends_new_blocks_only():
    """93 layers, blocks of 12: with chunks, all blocks at each crossing are more."""
    config = recipes.released().text
    counted = {}
    for virtual in (1, 2, 4):
        parts = layout.chunks(config, 16, virtual)
        counted[virtual] = sum(c.sent for c in parts), sum(c.held for c in parts)
    assert counted == {1: (64, 64), 2: (96, 136), 4: (113, 315)}


def test_more_chunks_than_layers_are_refused():
    said = r"must be at most num_hidden_layers: got 3 \* 3 for 8"
    with pytest.raises(ConfigError, match=said):
        of(8, 3, 3)
