"""Absorbed attention of a decode step at all levels, at sizes that fill no vector."""

import dataclasses

import pytest
import torch
from levels import LEVELS, at_level
from small import config, gap, ids, model

from k3.kernels import choose
from k3.model.cache import MLACache

WIDE = {"kv_lora_rank": 53, "qk_rope_head_dim": 6, "num_attention_heads": 9}
LENS = (1, 135, 1089)


TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2}


def step(net, rows):
    """Logits behind contexts of LENS rows; nothing but NaN lies behind those."""
    state = net.init_state(len(LENS))
    for cache in state.caches:
        if isinstance(cache, MLACache):
            cache.rows, cache.lens = rows.to(net.dtype), LENS
            for row, length in zip(cache.rows, LENS, strict=True):
                row[length + 1 :] = torch.nan
    return net.step(ids(len(LENS), 1), dataclasses.replace(state, lens=LENS))[0]


@pytest.mark.parametrize("dtype", TOLERANCE)
@torch.no_grad()
def test_heads_and_rows_that_fill_no_vector(poisoned, dtype):
    """At every level as PyTorch's, with weights that lie far apart."""
    net = model(dtype, config(num_key_value_heads=9, **WIDE))
    rows = torch.randn(3, 1100, 59, generator=torch.Generator().manual_seed(2)) * 8
    with choose.use("torch"):
        want = step(net, rows)
    for level in LEVELS:
        with at_level(level), choose.use("native"):
            assert 0 < gap(step(net, rows), want) < TOLERANCE[dtype], level
