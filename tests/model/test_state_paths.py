"""Streaming, chunked, packed and whole-sequence passes: one function, one state."""

import itertools
import random

import pytest
import tolerances
import torch
from small import gap, ids, model, state_gap

from k3.kernels import mla

T = 35
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(scope="module")
def models():
    return {dtype: model(dtype) for dtype in DTYPES}


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def whole(net, tokens):
    return net(tokens, state=net.init_state(len(tokens)))


def in_pieces(net, tokens, cuts, keep=0):
    """Run tokens piece after piece: (all logits, final state)."""
    state, outs = net.init_state(len(tokens), keep), []
    for piece in tokens.split(cuts, 1):
        logits, state = net(piece, state=state)
        outs.append(logits)
    return torch.cat(outs, 1), state


def agree(got, want, dtype):
    tol = tolerances.of("state", dtype)
    assert gap(got[0], want[0]) < tol
    assert state_gap(got[1], want[1]) < tol


def cuts(seed):
    chance = random.Random(seed)
    places = sorted(chance.choices(range(T + 1), k=chance.randint(1, 6)))
    return [b - a for a, b in itertools.pairwise([0, *places, T])]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_state_does_not_change_the_logits(poisoned, models, dtype):
    tokens = ids(2, T)
    got, state = whole(models[dtype], tokens)
    assert gap(got, models[dtype](tokens)) < tolerances.of("state", dtype)
    assert state.lens == (T, T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_token_by_token(poisoned, unchecked, models, dtype):
    tokens = ids(2, T)
    net = models[dtype]
    state, outs = net.init_state(2), []
    for t in range(T):
        logits, state = net.step(tokens[:, t : t + 1], state)
        outs.append(logits)
    agree((torch.cat(outs, 1), state), whole(net, tokens), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keep", [0, 5])
def test_random_cuts(poisoned, models, dtype, seed, keep):
    tokens = ids(2, T, seed=seed)
    net = models[dtype]
    agree(in_pieces(net, tokens, cuts(seed), keep), whole(net, tokens), dtype)


@pytest.mark.parametrize("workspace", [8])
@pytest.mark.parametrize("sizes", [[T], [17, *[1] * 9, 9], [33, 2]])
def test_report_23_contexts_over_a_small_workspace(
    poisoned, unchecked, models, monkeypatch, workspace, sizes
):
    net, tokens = models[torch.float64], ids(2, T)
    want = whole(net, tokens)
    monkeypatch.setattr(mla, "WORKSPACE_TOKENS", workspace)
    agree(in_pieces(net, tokens, sizes), want, torch.float64)


@pytest.mark.parametrize("absorbs", [True, False])
@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.parametrize("workspace", [8, 8192])
def test_both_branches_of_mla_behind_a_context(
    poisoned, models, monkeypatch, absorbs, size, workspace
):
    net, tokens = models[torch.float64], ids(2, T)
    want = whole(net, tokens)
    monkeypatch.setattr(mla, "WORKSPACE_TOKENS", workspace)
    for layer in net.language_model.model.layers:
        if hasattr(layer.self_attn, "kv_b_proj"):
            monkeypatch.setattr(
                layer.self_attn, "_absorbing_is_cheaper", lambda _: absorbs
            )
    agree(in_pieces(net, tokens, [T - size, size]), want, torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_prefill_then_steps_is_each_sequence_alone(poisoned, models, dtype):
    """Ragged lengths, an empty one among them, then three tokens of each."""
    net, lens = models[dtype], [5, 0, 17, 1, 9]
    rows, more = [ids(1, n, seed=n + 1) for n in lens], ids(5, 3)
    bounds = torch.tensor([0, *itertools.accumulate(lens)])
    logits, state = net(torch.cat(rows, 1), state=net.init_state(5), cu_seqlens=bounds)
    assert state.lens == tuple(lens)
    later = []
    for t in range(3):
        out, state = net.step(more[:, t : t + 1], state)
        later.append(out)
    tol = tolerances.of("state", dtype)
    for b, (row, part) in enumerate(zip(rows, logits[0].split(lens), strict=True)):
        want, alone = whole(net, torch.cat([row, more[b : b + 1]], 1))
        assert gap(part, want[0, : lens[b]]) < tol
        assert gap(torch.cat(later, 1)[b], want[0, lens[b] :]) < tol
        for mine, theirs in zip(state.caches, alone.caches, strict=True):
            if hasattr(mine, "rows"):
                assert gap(mine.of(b), theirs.of(0)) < tol
            else:
                assert gap(mine.state[b], theirs.state[0]) < tol
                assert gap(mine.window[b], theirs.window[0]) < tol


def test_packed_prefill_continues_a_ragged_state(poisoned, models):
    """Two packed passes, each with other lengths, are one."""
    net = models[torch.float64]
    first, second = [4, 0, 11], [0, 6, 3]
    rows = [ids(1, a + b, seed=a) for a, b in zip(first, second, strict=True)]
    state, outs = net.init_state(3), []
    starts = [0, 0, 0]
    for lens in (first, second):
        parts = [r[:, s : s + n] for r, s, n in zip(rows, starts, lens, strict=True)]
        bounds = torch.tensor([0, *itertools.accumulate(lens)])
        logits, state = net(torch.cat(parts, 1), state=state, cu_seqlens=bounds)
        outs.append(logits[0].split(lens))
        starts = lens
    for b, row in enumerate(rows):
        got = torch.cat([outs[0][b], outs[1][b]])
        assert gap(got, net(row)[0]) < 1e-11


def test_several_tokens_behind_a_ragged_state(poisoned, models):
    net, lens = models[torch.float64], [3, 12]
    rows = [ids(1, n, seed=n) for n in lens]
    bounds = torch.tensor([0, 3, 15])
    _, ragged = net(torch.cat(rows, 1), state=net.init_state(2), cu_seqlens=bounds)
    for size in (2, 30):
        more = ids(2, size, seed=4)
        out, _ = net(more, state=ragged.fork())
        for b, row in enumerate(rows):
            want = net(torch.cat([row, more[b : b + 1]], 1))[0, lens[b] :]
            assert gap(out[b], want) < 1e-11


def test_an_empty_piece_changes_nothing(poisoned, models):
    net, tokens = models[torch.float64], ids(2, 9)
    want, state = whole(net, tokens)
    before = state.fork()
    none, state = net(tokens[:, :0], state=state)
    assert none.shape == (2, 0, want.shape[-1])
    assert state_gap(state, before) == 0


def test_report_88_there_are_no_positions(models):
    """Positions enter nowhere: a context in another order gives the same attention."""
    attention = models[torch.float64].language_model.model.layers[3].self_attn
    x = torch.randn(1, 1012, 26, dtype=torch.float64)
    order = torch.randperm(1011)
    shuffled = torch.cat([x[:, order], x[:, 1011:]], 1)
    assert gap(attention(shuffled)[:, -1], attention(x)[:, -1]) < 1e-12


def test_report_88_a_cached_row_is_latent_and_raw_key(models):
    net = models[torch.float64]
    attention = net.language_model.model.layers[3].self_attn
    x = torch.randn(2, 5, 26, dtype=torch.float64)
    cache = attention.init_cache(2, x)
    attention(x, cache)
    raw = attention.kv_a_proj_with_mqa(x)
    assert cache.rows.shape[-1] == net.config.text.mla_row_scalars == 24
    assert torch.equal(cache.rows[:, :5, 18:], raw[..., 18:])
    assert gap(cache.rows[:, :5, :18], raw[..., :18]) > 1e-3
