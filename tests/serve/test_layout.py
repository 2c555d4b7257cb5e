"""Sizes of the prefix cache: what is refused, and how layers are dealt out."""

import pytest
import torch
from small import config, model, schedule

from k3 import recipes
from k3.config import sizes
from k3.errors import RequestError
from k3.serve import CacheOptions
from k3.serve.layout import Layout, kda_groups, mla_layers


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"hash_tokens": 8}, "16 <= hash_tokens <= block_tokens <= 6144"),
        ({"block_tokens": 8192}, "16 <= hash_tokens <= block_tokens <= 6144"),
        ({"hash_tokens": 20, "block_tokens": 40}, "multiple of 8"),
        ({"block_tokens": 1000}, "block_tokens must be a multiple of hash_tokens 512"),
        ({"chunk_tokens": 100}, "chunk_tokens must be a multiple of hash_tokens 512"),
    ],
)
def test_options_are_checked(sizes, message):
    with pytest.raises(RequestError, match=message):
        CacheOptions(**({"chunk_tokens": 40} if "hash_tokens" in sizes else {}) | sizes)


def test_layers_of_the_release():
    released = recipes.released()
    groups = kda_groups(released, 3)
    assert len(mla_layers(released)) == 24
    assert [len(group) for group in groups] == [23, 23, 23]
    assert [group[:2] for group in groups] == [[0, 4], [1, 5], [2, 6]]


def test_more_groups_than_kda_layers():
    small = config(num_hidden_layers=4, linear=schedule(4))
    assert kda_groups(small, 9) == ([0], [1], [2])


def test_bytes_of_groups_are_those_of_the_configuration():
    net = model(torch.bfloat16)
    layout = Layout(net, CacheOptions(hash_tokens=16, block_tokens=48, chunk_tokens=48))
    memory = sizes.memory(net.config, 0)
    assert sum(layout.group_bytes) == memory.fixed_bytes
    assert len(layout.mla) * layout.page_bytes == 48 * memory.mla_bytes_per_token
