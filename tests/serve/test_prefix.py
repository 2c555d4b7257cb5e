"""The prefix cache with a real model: what is restored equals a cold run."""

import pytest
import torch
from small import MEDIA, config, gap, ids, model, state_gap

from k3.errors import RequestError
from k3.serve import CacheOptions, Image, PrefixCache, keys, prefill

TOLERANCE = 1e-5
# Kernels have their own tests with shape checks; here they would take minutes.
pytestmark = pytest.mark.usefixtures("unchecked")
SMALL = {"hash_tokens": 16, "block_tokens": 48, "chunk_tokens": 32}


@pytest.fixture(scope="module")
def net():
    return model(torch.float32)


def cache_of(net, memory_bytes=2**22, **sizes):
    return PrefixCache(net, CacheOptions(memory_bytes=memory_bytes, **(SMALL | sizes)))


@torch.no_grad()
def cold(net, tokens, features=None):
    state = net.init_state(1)
    return net(torch.tensor([tokens]), state=state, features=features, logits="last")


def agrees(net, cache, tokens, cached, features=None, chain=None):
    """Prefill, compare logits and every layer's state with a cold run."""
    got = prefill(net, cache, chain or tokens, features=features)
    logits, state = cold(net, tokens, features)
    assert got.cached_tokens == cached
    assert gap(got.logits, logits) <= TOLERANCE
    assert state_gap(got.state, state) <= TOLERANCE
    return got


def test_report_1_a_hit_restores_every_memory_window_and_row():
    """3 KDA and 1 MLA, page 64: A of 200 tokens, B shares exactly its first 128."""
    layers = {"full_attn_layers": [4], "kda_layers": [1, 2, 3]}
    net = model(made=config(linear=layers, num_hidden_layers=4))
    cache = cache_of(net, hash_tokens=64, block_tokens=64, chunk_tokens=64)
    a, b = ids(200).tolist(), ids(90, seed=2).tolist()
    b[0] = (a[128] + 1) % 57
    agrees(net, cache, a, 0)
    restored, cached = cache.restore(a[:128] + b)
    assert cached == 128
    assert state_gap(restored, cold(net, a[:128])[1]) <= TOLERANCE
    assert all(c.state.abs().max() > 0.01 for c in restored.caches[:3])
    agrees(net, cache, a[:128] + b, 128)


EDGES = sorted({n + d for n in (16, 32, 48, 64, 96, 144) for d in (-1, 0, 1)})


@pytest.mark.parametrize("length", [1, 2, *EDGES])
def test_prompts_around_every_boundary(net, length, poisoned):
    cache, tokens = cache_of(net), ids(length).tolist()
    reuse = (length - 1) // 16 * 16
    agrees(net, cache, tokens, 0)
    agrees(net, cache, tokens, reuse)
    longer = tokens + ids(21, seed=3).tolist()
    agrees(net, cache, longer, length // 16 * 16)


@pytest.mark.parametrize("chunk", [16, 48])
@pytest.mark.parametrize(
    ("length", "reuse"),
    [(15, 0), (16, 0), (17, 16), (31, 16), (32, 16), (33, 32), (48, 32)],
)
def test_report_53_an_exact_multiple_hits(net, length, reuse, chunk):
    cache = cache_of(net, block_tokens=16 if chunk == 16 else 48, chunk_tokens=chunk)
    tokens = ids(length).tolist()
    agrees(net, cache, tokens, 0)
    agrees(net, cache, tokens, reuse)


def test_report_4_unverified_tokens_are_never_stored(net):
    """A, B, A and a sibling of A, with three always wrong drafts behind each."""
    cache = cache_of(net, block_tokens=16, chunk_tokens=16)
    a, b = ids(40).tolist(), ids(40, seed=2).tolist()
    for tokens, cached in ((a, 0), (b, 0), (a, 32), (a[:35] + b[:9], 32)):
        chain = cache.chain(tokens)
        got = prefill(net, cache, chain, keep_inputs=3)
        assert got.cached_tokens == cached
        for token in ids(12, seed=4).tolist():
            drafts = torch.tensor([[token, 1, 2, 3]])
            with torch.no_grad():
                _, state = net(drafts, state=got.state)
            chain.extend([token])
            with pytest.raises(RequestError, match="rewind what was not verified"):
                cache.store(chain, state)
            got = type(got)(got.logits, state.rewind(3), cached, chain)
            cache.store(chain, got.state)
        assert state_gap(got.state, cold(net, chain.tokens)[1]) <= TOLERANCE
        for at in range(16, len(chain), 16):
            restored, found = cache.restore(chain.tokens[: at + 1])
            assert found == at
            assert state_gap(restored, cold(net, chain.tokens[:at])[1]) <= TOLERANCE


def test_report_7_an_aborted_prefill_leaves_nothing_to_hit(net):
    cache = cache_of(net, chunk_tokens=16)
    tokens, free = ids(64).tolist(), cache.index.pages.num_free
    write = cache.schedule(cache.chain(tokens), 16)
    assert cache.restore(tokens)[1] == 0
    cache.abort(write)
    assert cache.index.pages.num_free == free
    agrees(net, cache, tokens, 0)


def test_report_56_a_thousand_cancels_leak_nothing(net):
    """Writes are dropped at random; shared prefixes stay valid, no page is lost."""
    cache, random = cache_of(net), torch.Generator().manual_seed(1)
    tokens, other = ids(64).tolist(), ids(64, seed=2).tolist()
    agrees(net, cache, tokens, 0)
    used = cache.index.pages.num_used
    for cut in torch.randint(0, 5, (1000,), generator=random).tolist():
        chain = cache.chain(tokens[: 16 * cut] + other[16 * cut :])
        writes = [cache.schedule(chain, 16 * n) for n in range(cut, 5)]
        for write in writes:
            cache.abort(write)
        assert cache.index.pages.num_used == used
    agrees(net, cache, tokens, 48)


def test_a_pass_that_fails_aborts_its_write(net):
    cache = cache_of(net)
    tokens, free = ids(40).tolist(), cache.index.pages.num_free
    with pytest.raises(RequestError, match="token ids must be in"):
        prefill(net, cache, [61, *tokens])
    assert (cache.index.pages.num_free, cache.stats.aborts) == (free, 1)
    agrees(net, cache, tokens, 0)


def test_report_13_another_image_is_another_prefix(net):
    cache, width = cache_of(net, chunk_tokens=16), net.config.text.hidden_size
    text, more = ids(21).tolist(), ids(20, seed=2).tolist()
    tokens = [*text, *[MEDIA] * 6, *more]
    rows = {colour: torch.full((6, width), float(colour)) for colour in (0, 1)}
    pixels = {colour: torch.full((24, 3, 14, 14), float(colour)) for colour in (0, 1)}

    def chain(colour, at=21, tokens=tokens):
        digest = keys.content(pixels[colour], (1, 4, 6))
        return cache.chain(tokens, [Image(start=at, tokens=6, digest=digest)])

    agrees(net, cache, tokens, 0, rows[0], chain(0))
    agrees(net, cache, tokens, 16, rows[1], chain(1))
    agrees(net, cache, tokens, 32, rows[0], chain(0))
    shifted = [*text[:20], *[MEDIA] * 6, *text[20:], *more]
    agrees(net, cache, shifted, 16, rows[0], chain(0, 20, shifted))
    with pytest.raises(RequestError, match="needs the content of its image"):
        cache.chain(tokens)
    with pytest.raises(RequestError, match="stands on placeholders alone"):
        chain(0, 20)


def test_report_67_siblings_share_what_a_chunk_passed(net):
    """A shared start of 75 tokens, spacing 16: siblings reuse 64 whatever the chunk."""
    cache = cache_of(net, chunk_tokens=16, block_tokens=96)
    shared = ids(75).tolist()
    cached = []
    for seed in range(2, 10):
        tail = ids(33, seed=seed).tolist()
        cached.append(prefill(net, cache, shared + tail).cached_tokens)
    assert cached[0] == 0
    assert min(cached[1:]) == 64


def test_report_67_a_branch_inside_a_chunk_is_stored_when_it_is_met(net):
    """Chunks pass over the end of the shared start; the second sibling stops there."""
    cache = cache_of(net, chunk_tokens=96, block_tokens=96)
    shared = ids(75).tolist()
    tails = [ids(33, seed=seed).tolist() for seed in range(2, 6)]
    for tail, cached in zip(tails, (0, 0, 64, 64), strict=True):
        agrees(net, cache, shared + tail, cached)


def test_report_67_the_checkpoint_of_130_tokens_is_the_state_at_128(net):
    cache = cache_of(net, hash_tokens=64, block_tokens=128, chunk_tokens=192)
    tokens = ids(130).tolist()
    agrees(net, cache, tokens, 0)
    restored, cached = cache.restore(tokens)
    assert cached == 128
    assert state_gap(restored, cold(net, tokens[:128])[1]) <= TOLERANCE


def test_report_86_ten_turns_equal_cold_runs(net):
    cache, tokens = cache_of(net), ids(30, seed=9).tolist()
    agrees(net, cache, tokens, 0)
    for turn in range(10):
        before = len(tokens) // 16 * 16
        tokens += ids(13 + turn, seed=turn).tolist()
        agrees(net, cache, tokens, before)
    assert cache.stats.hits == 10
    assert 0.5 < cache.stats.hit_rate < 1


def test_what_is_restored_may_be_written_over(net):
    cache, tokens = cache_of(net), ids(64).tolist()
    agrees(net, cache, tokens, 0)
    state, _ = cache.restore(tokens)
    for layer in state.caches:
        for tensor in layer.tensors().values():
            tensor.fill_(7.0)
    agrees(net, cache, tokens, 48)


def test_new_weights_find_nothing():
    net = model()
    cache, tokens = cache_of(net), ids(64).tolist()
    chain = cache.chain(tokens)
    old = agrees(net, cache, chain.tokens, 0, chain=chain)
    write = cache.schedule(cache.chain(ids(16, seed=2).tolist()))
    net.weight_version += 1
    with torch.no_grad():
        net.language_model.lm_head.weight.mul_(2.0)
    with pytest.raises(RequestError, match=r"chain has weight version \d+, the mo"):
        cache.restore(chain)
    with pytest.raises(RequestError, match="state belongs to the weights that made"):
        cache.commit(write, old.state)
    assert cache.stats.aborts == 1
    agrees(net, cache, tokens, 0)
    agrees(net, cache, tokens, 48)


def test_a_tenants_salt_keeps_its_prefixes_apart(net):
    cache, tokens = cache_of(net), ids(64).tolist()
    for salt, cached in ((b"a", 0), (b"b", 0), (b"", 0), (b"a", 48)):
        chain = cache.chain(tokens, salt=salt)
        assert prefill(net, cache, chain).cached_tokens == cached


def test_a_sequence_of_a_batch_is_stored(net):
    cache, tokens = cache_of(net), ids(3, 32)
    with torch.no_grad():
        _, state = net(tokens, state=net.init_state(3))
    assert cache.store(tokens[1].tolist(), state, row=1)
    agrees(net, cache, [*tokens[1].tolist(), 5], 32)
    with pytest.raises(RequestError, match="one of the state's 3 sequences: got 3"):
        cache.store(tokens[1].tolist(), state, row=3)


def test_without_room_nothing_is_stored_and_the_prompt_still_runs(net):
    least = cache_of(net).layout
    pages = len(least.mla) + sum(least.group_pages)
    cache = cache_of(net, memory_bytes=pages * least.page_bytes)
    tokens = ids(150).tolist()
    agrees(net, cache, tokens, 0)
    assert cache.stats.not_stored > 0
    with pytest.raises(RequestError, match="one block and one checkpoint"):
        cache_of(net, memory_bytes=pages * least.page_bytes - 1)


def test_a_small_cache_under_pressure_stays_right(net):
    cache = cache_of(net, memory_bytes=40 * 16 * 3 * 24 * 4)
    random = torch.Generator().manual_seed(3)
    for seed in torch.randint(0, 4, (12,), generator=random).tolist():
        tokens = (
            ids(70, seed=8).tolist()[: 20 + 10 * seed] + ids(40, seed=seed).tolist()
        )
        got = prefill(net, cache, tokens)
        assert state_gap(got.state, cold(net, tokens)[1]) <= TOLERANCE
    assert cache.index.num_evicted > 0
    assert cache.stats.hits > 0
    cache.clear()
    assert cache.index.pages.num_used == 0


def test_a_writes_end_is_checked(net):
    cache, chain = cache_of(net), cache_of(net).chain(ids(40).tolist())
    with pytest.raises(RequestError, match=r"multiple of hash_tokens 16 .* got 40"):
        cache.schedule(chain)
    _, state = cold(net, chain.tokens[:16])
    with pytest.raises(RequestError, match="at 32 is the state after 32 tokens: got"):
        cache.commit(cache.schedule(chain, 32), state)
    assert cache.index.pages.num_used == 0


def test_2800_matching_tokens_in_a_6144_block_restore_at_2560(net):
    sizes = {"hash_tokens": 512, "block_tokens": 6144, "chunk_tokens": 512}
    cache = cache_of(net, memory_bytes=2**25, **sizes)
    tokens = ids(2850).tolist()
    other = [*tokens[:2800], *ids(30, seed=2).tolist()]
    prefill(net, cache, tokens)
    assert cache.index.pages.num_used == len(cache.layout.mla) + 5 * len(
        cache.layout.groups
    )
    agrees(net, cache, other, 2560)
