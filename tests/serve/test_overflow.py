"""The tier on disk: a restart, damage, a full disk, and the extra that is missing."""

import sys

import pytest
import torch
from serving import engine, request, run, same, tokens
from small import config, ids, model, state_gap

from k3.errors import RequestError
from k3.serve import CacheOptions, PrefixCache, prefill
from k3.serve.overflow import Overflow

pytest.importorskip("lmdb", reason="the serve extra is not installed")
pytestmark = pytest.mark.usefixtures("unchecked")
SIZES = {"hash_tokens": 16, "block_tokens": 48, "chunk_tokens": 32}


@pytest.fixture(scope="module")
def net():
    return model(torch.float32)


def cache_of(net, overflow, weights="digest"):
    return PrefixCache(net, CacheOptions(**SIZES), weights=weights, overflow=overflow)


def agrees(net, cache, tokens, cached):
    got = prefill(net, cache, tokens)
    with torch.no_grad():
        _, cold = net(torch.tensor([tokens]), state=net.init_state(1))
    assert got.cached_tokens == cached
    assert state_gap(got.state, cold) <= 1e-5


def test_report_86_a_conversation_survives_a_restart_in_the_middle(net, tmp_path):
    overflow, tokens = Overflow(tmp_path / "states"), ids(40).tolist()
    agrees(net, cache_of(net, overflow), tokens, 0)
    for turn in range(3):
        overflow.close()
        overflow = Overflow(tmp_path / "states")
        cache = cache_of(net, overflow)
        before = len(tokens) // 16 * 16
        tokens += ids(21, seed=turn).tolist()
        agrees(net, cache, tokens, before)
        assert cache.stats.loads == 1
        agrees(net, cache, [*tokens, 5], len(tokens) // 16 * 16)
        assert cache.stats.loads == 1
    overflow.close()


def test_other_weights_find_nothing_on_disk(net, tmp_path):
    overflow, tokens = Overflow(tmp_path), ids(40).tolist()
    agrees(net, cache_of(net, overflow), tokens, 0)
    agrees(net, cache_of(net, overflow, "other"), tokens, 0)
    with pytest.raises(RequestError, match="without a name for the weights; pass"):
        cache_of(net, overflow, "")
    overflow.clear()
    agrees(net, cache_of(net, overflow), tokens, 0)
    overflow.close()


def test_an_update_without_a_name_leaves_the_disk_alone(tmp_path):
    net = model()
    overflow, tokens = Overflow(tmp_path), ids(40).tolist()
    cache = cache_of(net, overflow)
    agrees(net, cache, tokens, 0)
    net.weight_version += 1
    with torch.no_grad():
        net.language_model.lm_head.weight.mul_(2.0)
    agrees(net, cache, tokens, 0)
    before = model()
    agrees(before, cache_of(before, overflow), tokens, 32)
    with pytest.raises(RequestError, match="belongs to one model: got another; make"):
        prefill(before, cache, tokens)
    cache.new_weights("after the update")
    agrees(net, cache, tokens, 0)
    agrees(net, cache_of(net, overflow, "after the update"), tokens, 32)
    overflow.close()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_what_comes_back_is_bitwise_what_was_stored(dtype, tmp_path):
    """From pages, and from disk after a restart; windows of odd width in bfloat16."""
    linear = {"num_heads": 3, "head_dim": 10, "value_head_dim": 13}
    net = model(dtype, config(linear=linear))
    overflow, tokens = Overflow(tmp_path), ids(80).tolist()
    with torch.no_grad():
        _, state = net(torch.tensor([tokens]), state=net.init_state(1))
    first, second = cache_of(net, overflow), cache_of(net, overflow)
    assert first.store(tokens, state, turn=True)
    for cache, loads in ((first, 0), (second, 1), (second, 1)):
        restored, cached = cache.restore([*tokens, 3])
        assert (cached, cache.stats.loads) == (80, loads)
        want, got = state.pack(), restored.pack()
        assert want.keys() == got.keys()
        assert all(torch.equal(want[name], got[name]) for name in want)
    overflow.close()


def test_a_damaged_value_is_a_miss(net, tmp_path):
    overflow, tokens = Overflow(tmp_path), ids(40).tolist()
    cache = cache_of(net, overflow)
    agrees(net, cache, tokens, 0)
    key = b"rows" + cache.chain(tokens).keys[0]
    with overflow._env.begin(write=True) as transaction:
        value = bytearray(transaction.get(key))
        value[-1] ^= 1
        transaction.put(key, bytes(value))
    agrees(net, cache_of(net, overflow), tokens, 0)
    overflow.close()


def test_a_full_disk_takes_no_more_and_says_so(net, tmp_path):
    overflow = Overflow(tmp_path, max_bytes=2**17)
    cache = cache_of(net, overflow)
    for seed in range(4):
        agrees(net, cache, ids(40, seed=seed).tolist(), 0)
    assert 0 < cache.stats.overflow_full <= 4
    overflow.close()


def test_without_the_extra_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(RequestError, match=r"not installed: pip install 'k3\[serve\]'"):
        Overflow(tmp_path)


def test_report_86_an_engine_goes_on_after_a_restart(net, tmp_path):
    """Ten turns, a new process after the fifth: no error, each as without a cache."""
    options = {"cache_dir": str(tmp_path / "states"), "weights": "digest"}
    made, said = engine(net, **options), ids(40).tolist()
    for turn in range(10):
        if turn == 5:
            made.cache.overflow.close()
            made = engine(net, **options)
        asked = request("a", tokens=tuple(said), max_tokens=5)
        got = run(made, [asked])[asked.id, 0]
        same(got, run(engine(net, cache=None), [asked])[asked.id, 0])
        assert got[-1].cached_tokens >= (turn > 0) * (len(said) - 30)
        assert made.snapshot().prefix_loads == (turn >= 5)
        said += [token.id for token in tokens(got)] + ids(9, seed=turn).tolist()
    made.reset_prefix_cache()
    made.cache.overflow.close()
    made = engine(net, **options)
    assert run(made, [asked])[asked.id, 0][-1].cached_tokens == 0
    made.cache.overflow.close()


def test_a_folder_that_is_none_is_refused(tmp_path):
    (tmp_path / "data.mdb").write_bytes(b"x" * 8192)
    with pytest.raises(RequestError, match=r"cannot be opened: .*; name another, or"):
        Overflow(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="cannot be opened"):
        Overflow(tmp_path / "file")
