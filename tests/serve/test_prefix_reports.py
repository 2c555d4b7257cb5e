"""Reports on the prefix cache that are about several requests, or about drafts."""

import pytest
import torch
from serving import CACHE, engine, request, run, same, tokens
from small import config, ids, model, schedule, state_gap

from k3.serve import CacheOptions, PrefixCache, prefill
from k3.serve.draft import NGramDraft

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    made = config(num_hidden_layers=4, linear=schedule(4), max_position_embeddings=8192)
    return model(made=made)


@torch.no_grad()
def test_report_29_short_chunks_leave_the_shared_prefix_alone(net):
    """A hit of 64 tokens, then 1 and 2 at a time; what others read keeps every bit."""
    sizes = {
        "hash_tokens": 16,
        "block_tokens": 64,
        "chunk_tokens": 64,
        "memory_bytes": 2**22,
    }
    cache, shared = PrefixCache(net, CacheOptions(**sizes)), ids(64).tolist()
    prefill(net, cache, shared)
    stored = cache.memory.data.clone()
    first, cached = cache.restore([*shared, 1])
    assert cached == 64
    before, mine = first.pack(), first
    for chunk in ([3], [4, 5], [6], [7, 8]):
        _, mine = net(torch.tensor([chunk]), state=mine)
    third, _ = cache.restore([*shared, 1])
    assert torch.equal(cache.memory.data, stored)
    again = third.pack()
    assert all(torch.equal(before[name], again[name]) for name in before)
    _, cold = net(torch.tensor([[*shared, 3, 4, 5, 6, 7, 8]]), state=net.init_state(1))
    assert state_gap(mine, cold) <= 1e-5


@pytest.mark.parametrize("length", [281, pytest.param(4481, marks=pytest.mark.slow)])
def test_report_68_drafting_keeps_the_hits(net, length):
    """The same prompt four times with two drafted tokens: hits as without a draft."""
    cache = {"cache": CACHE, "max_num_batched_tokens": 256, "long_tokens": 8192}
    plain = engine(net, **cache)
    drafted = engine(net, draft=NGramDraft(), num_speculative_tokens=2, **cache)
    asked = request("same", length, temperature=0.0)
    cold = run(engine(net, **cache | {"cache": None}), [asked])[asked.id, 0]
    for repeat in range(4):
        with_draft = run(drafted, [asked])[asked.id, 0]
        without = run(plain, [asked])[asked.id, 0]
        same(with_draft, cold)
        same(without, cold)
        most = without[-1].cached_tokens
        assert most == (length - 1) // 16 * 16 * (repeat > 0)
        assert most - 16 <= with_draft[-1].cached_tokens <= most
    assert len(tokens(cold)) == 12


@pytest.mark.slow
def test_report_67_many_siblings_share_a_system_prompt(net):
    """1,500 shared tokens and 64 tails, checkpoints every 512: 1,024 are reused."""
    sizes = {"hash_tokens": 512, "block_tokens": 1024, "chunk_tokens": 1024}
    options = {"long_tokens": 8192, "max_num_batched_tokens": 1024}
    made = engine(net, cache=CacheOptions(**sizes), **options)
    shared = tuple(ids(1500).tolist())
    tails = [tuple(ids(33, seed=seed).tolist()) for seed in range(64)]
    asked = [
        request(f"{i}", tokens=shared + tail, max_tokens=1)
        for i, tail in enumerate(tails)
    ]
    got = run(made, asked)
    assert min(got[one.id, 0][-1].cached_tokens for one in asked[1:]) >= 1024
