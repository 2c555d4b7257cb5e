"""Depth retrieval over layers: which sources each sublayer sees, none counted twice."""

import pytest
import torch
from small import config, gap, ids, model, schedule

from k3.kernels import attn_res
from k3.model.attn_res import Depth
from k3.model.linear import RMSNorm, linear


@pytest.fixture(scope="module")
def net():
    return model(torch.float64)


def watch(monkeypatch):
    """Record the sources of every retrieval that mixes: [.. S D] each."""
    seen, mix = [], attn_res.mix

    def record(blocks, scale, prefix, query, eps):
        last = [] if prefix is None else [prefix.unsqueeze(-2)]
        seen.append(torch.cat([blocks, *last], -2))
        return mix(blocks, scale, prefix, query, eps)

    monkeypatch.setattr(attn_res, "mix", record)
    return seen


def test_report_37_conservation_after_every_sublayer(net, monkeypatch):
    """Embedding + completed blocks + running sum == the ordinary residual sum."""
    outputs = []
    add = Depth.add

    def record(self, y):
        outputs.append(y)
        add(self, y)

    monkeypatch.setattr(Depth, "add", record)
    seen, taps = watch(monkeypatch), {}
    net(ids(2, 5), taps=taps)
    assert len(outputs) == 14
    # Layer 0 attends to the embedding alone; then every sublayer and the end mix.
    assert len(seen) == 14
    residual = taps["embed_tokens"]
    for sources, y in zip(seen, outputs, strict=True):
        residual = residual + y
        assert gap(sources.sum(-2), residual) < 1e-12


def test_number_of_sources_with_blocks_of_three(net, monkeypatch):
    """Before each sublayer: mlp of 0, attention of 1, mlp of 1, ..., the end."""
    seen = watch(monkeypatch)
    net(ids(1, 2))
    # At the first sublayer of a block the running sum is complete, and its last one.
    want = [2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4]
    assert [s.shape[-2] for s in seen] == want


@pytest.mark.parametrize(("layers", "size"), [(8, 1), (8, 4), (8, 5), (8, 8), (8, 99)])
def test_blocks_of_any_size(monkeypatch, layers, size):
    made = config(
        num_hidden_layers=layers, attn_res_block_size=size, linear=schedule(layers)
    )
    small, taps = model(torch.float64, made), {}
    seen = watch(monkeypatch)
    small(ids(1, 2), taps=taps)
    # The embedding, the blocks completed before the last one begins, and the rest.
    assert seen[-1].shape[-2] == made.text.attn_res_sources == -(-layers // size) + 1
    sums = [taps[f"layers.{i}.out_prefix"] for i in range(layers)]
    ends = [i for i in range(layers) if (i + 1) % size == 0 or i == layers - 1]
    want = torch.stack([taps["embed_tokens"], *(sums[i] for i in ends)], -2)
    assert gap(seen[-1], want) < 1e-12


def test_report_37_nine_sources_after_93_layers():
    """The bookkeeping alone, with the release's block of 12."""
    depth = Depth(prefix=torch.ones(1, 1, 4), eps=1e-5)
    sources = []
    for i in range(93):
        if i % 12 == 0:
            depth.commit()
            assert depth.prefix is None
        depth.add(torch.ones(1, 1, 4))
        depth.add(torch.ones(1, 1, 4))
        sources.append(depth.blocks.shape[-2] + 1)
    assert sources[11] == 2
    assert sources[12] == 3
    assert sources[-1] == 9
    assert depth.blocks[0, 0, :, 0].tolist() == [1.0] + [24.0] * 7
    assert depth.prefix[0, 0, 0] == 2 * 9


def test_before_any_block_the_embedding_passes_through():
    x = torch.randn(2, 3, 8)
    depth = Depth(prefix=x, eps=1e-5)
    norm, proj = RMSNorm(8, 1e-5, torch.float32), linear(8, 1, torch.float32)
    assert depth.retrieve(norm, proj, torch.float32) is x


def test_sources_are_of_one_token_only(net, monkeypatch):
    """Nothing crosses tokens: a token's retrieval is that of itself alone."""
    seen = watch(monkeypatch)
    net(ids(1, 5))
    sources = seen[-1]
    query = torch.randn(26, dtype=torch.float64)
    scale = attn_res.inverse_rms(sources, 1e-5)
    whole = attn_res.mix(sources, scale, None, query, 1e-5)
    alone = attn_res.mix(sources[:, 2:3], scale[:, 2:3], None, query, 1e-5)
    assert gap(whole[:, 2:3], alone) < 1e-14
