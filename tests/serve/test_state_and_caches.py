"""The numbers of docs/state-and-caches.md follow from the configuration."""

import math
import re
from pathlib import Path

import pytest

from k3 import recipes
from k3.config import sizes
from k3.serve import CacheOptions
from k3.serve.layout import kda_groups, mla_layers, page_bytes

PAGE = Path(__file__).parents[2] / "docs" / "state-and-caches.md"


@pytest.fixture(scope="module")
def text():
    return re.sub(r"\s+", " ", PAGE.read_text())


@pytest.fixture(scope="module")
def released():
    return recipes.released()


def test_bytes_of_a_sequence_and_a_token(text, released):
    memory = sizes.memory(released, 131_072)
    million = sizes.state_bytes(released, 1_048_576)
    worth = math.ceil(memory.fixed_bytes / memory.mla_bytes_per_token)
    for sentence in (
        f"fp32, 96 heads of 128 × 128 | 69 | {memory.kda_state_bytes:,} bytes | 0 |",
        f"q, k and v | 69 | {memory.conv_window_bytes:,} bytes | 0 |",
        f"64 shared key | 24 | 0 | {memory.mla_bytes_per_token:,} bytes |",
        f"**{memory.fixed_bytes:,} bytes** | **{memory.mla_bytes_per_token:,} bytes**",
        f"as much as {worth:,} tokens before",
        f"131,072 tokens take {memory.sequence_bytes:,} bytes",
        f"1,048,576 take {million:,}.",
    ):
        assert sentence in text
    assert len(released.text.kda_layers) == 69
    assert released.text.linear_attn_config.num_heads == 96


@pytest.mark.parametrize("block", [1024, 6144])
def test_pages_of_a_block_and_of_a_checkpoint(text, released, block):
    page, groups = page_bytes(released, block, 2), kda_groups(released, 3)
    memory = sizes.memory(released, 0)
    layer = memory.fixed_bytes // 69
    checkpoint = sum(math.ceil(len(group) * layer / page) for group in groups)
    rows = len(mla_layers(released))
    sentence = (
        f"| {block:,} tokens | {page:,} bytes | {rows} pages | {checkpoint} pages"
    )
    assert sentence in text
    if block == 1024:
        assert f"as {round(checkpoint / rows)} blocks of 1,024 tokens" in text


def test_defaults(text):
    options = CacheOptions()
    assert f"`hash_tokens` {options.hash_tokens} and" in text
    assert f"`block_tokens` {options.block_tokens:,}, both down to 16" in text
