"""Attention in passes, absorbed and paged, against one softmax over everything."""

import pytest
import tolerances
import torch
from small import gap

from k3.kernels import mla

H, DIM, V, LATENT, SHARED = 3, 18, 10, 14, 6
SCALE = DIM**-0.5


def reference(q, k, v):
    """One softmax per query, written out."""
    T, S = q.shape[2], k.shape[2]
    seen = torch.arange(S) <= torch.arange(S - T, S)[:, None]
    scores = (q @ k.mT * SCALE).masked_fill(~seen, -torch.inf)
    return torch.softmax(scores, -1) @ v


def made(T, S, batch=2, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, H, T, DIM), (batch, H, S, DIM), (batch, H, S, V)]
    return [torch.randn(*s, generator=generator, dtype=dtype).mul(2) for s in shapes]


@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 9), (5, 5), (4, 9), (17, 17)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_attend(poisoned, T, S, dtype):
    q, k, v = made(T, S, dtype=dtype)
    want = reference(q.double(), k.double(), v.double())
    for workspace in (1, 3, 8, 8192):
        got = mla.attend(q, k, v, SCALE, workspace)
        assert gap(got, want) < tolerances.of("mla", dtype)


@pytest.mark.parametrize("S", [7, 8, 9, 17])
@pytest.mark.parametrize("T", [1, 3])
def test_report_23_contexts_around_the_workspace(poisoned, S, T):
    """W - 1, W, W + 1, 2W + 1 with W = 8, and a value view of another stride."""
    q, k, v = made(T, S)
    wide = torch.full((2, H, S, V + 9), torch.nan, dtype=torch.float64)
    wide[..., :V] = v
    view = wide[..., :V]
    assert view.stride() != v.stride()
    want = reference(q, k, v)
    for values in (v, view):
        for workspace in (8, 3, 1):
            got = mla.attend(q, k, values, SCALE, workspace)
            assert gap(got, want) < 1e-5


def test_report_23_strides_of_192_and_128():
    q, k, v = torch.randn(1, 2, 3, 192), torch.randn(1, 2, 17, 192), None
    whole = torch.randn(1, 17, 2, 256).transpose(1, 2)
    v = whole[..., 128:]
    want = reference(q * 192**-0.5 / SCALE, k, v.contiguous())
    assert gap(mla.attend(q, k, v, 192**-0.5, 8), want) < 1e-5


def test_report_23_and_40_a_part_that_sees_nothing_adds_nothing():
    """All its scores are -inf, and its buffers hold NaN."""
    q, k, v = made(2, 6)
    whole = mla.partial(q, k, v, SCALE)
    nan = torch.full_like(v, torch.nan)
    nothing = torch.zeros(2, 6, dtype=torch.bool)
    empty = mla.partial(q, torch.full_like(k, torch.nan), nan, SCALE, nothing)
    assert (empty[0] == 0).all()
    assert (empty[1] == -torch.inf).all()
    for pair in ((whole, empty), (empty, whole)):
        out, lse = mla.merge(*pair)
        assert gap(out, whole[0]) < 1e-14
        assert gap(lse, whole[1]) < 1e-14
    out, lse = mla.merge(empty, empty)
    assert (out == 0).all()
    assert (lse == -torch.inf).all()


def test_report_40_an_empty_shard_with_a_nan_buffer():
    """A rank without tokens reports weight 0; its output was never written."""
    q, k, v = made(1, 5)
    whole = mla.partial(q, k, v, SCALE)
    unwritten = torch.full_like(whole[0], torch.nan)
    out, _ = mla.merge(whole, (unwritten, torch.full_like(whole[1], -torch.inf)))
    assert gap(out, whole[0]) < 1e-14


def test_gradients_through_passes_and_masked_parts():
    results = []
    for form in (reference, lambda q, k, v: mla.attend(q, k, v, SCALE, 4)):
        leaves = [x.requires_grad_() for x in made(6, 13)]
        out = form(*leaves)
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(3))
        results.append([out, *torch.autograd.grad((out * weight).sum(), leaves)])
    for got, want in zip(*results, strict=True):
        assert gap(got, want) < 1e-12


def rows_of(S, batch=2):
    """Cached rows [latent | shared key], queries over them, and their kv_b."""
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(batch, S, LATENT + SHARED, generator=generator)
    W = torch.randn(H, DIM - SHARED + V, LATENT, generator=generator)
    return rows.double(), W.double()


def expanded(q, rows, W):
    nope = DIM - SHARED
    kv = torch.einsum("bsl,hrl->bhsr", rows[..., :LATENT], W)
    shared = rows[:, None, :, LATENT:].expand(-1, H, -1, -1)
    return reference(q, torch.cat([kv[..., :nope], shared], -1), kv[..., nope:])


def absorbed(q, rows, table, lens, W):
    nope = DIM - SHARED
    query = torch.cat([q[..., :nope] @ W[:, :nope], q[..., nope:]], -1)
    out = mla.absorbed(query, rows, table, lens, latent_dim=LATENT, scale=SCALE)
    return out @ W[:, nope:].mT


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("workspace", [8, 8192])
def test_report_88_absorbed_is_expanded(poisoned, monkeypatch, T, workspace):
    monkeypatch.setattr(mla, "WORKSPACE_TOKENS", workspace)
    rows, W = rows_of(21)
    q = made(T, 1)[0]
    got = absorbed(q, rows, None, (21, 21), W)
    assert gap(got, expanded(q, rows, W)) < tolerances.of("mla", torch.float64)


@pytest.mark.parametrize("workspace", [8, 8192])
def test_ragged_lengths_never_read_behind_the_end(poisoned, monkeypatch, workspace):
    monkeypatch.setattr(mla, "WORKSPACE_TOKENS", workspace)
    rows, W = rows_of(21, batch=3)
    lens = (21, 2, 10)
    room = rows.clone()
    for b, n in enumerate(lens):
        room[b, n:] = torch.nan
    q = made(2, 1, batch=3)[0]
    got = absorbed(q, room, None, lens, W)
    for b, n in enumerate(lens):
        want = expanded(q[b : b + 1], rows[b : b + 1, :n], W)
        assert gap(got[b : b + 1], want) < tolerances.of("mla", torch.float64)


def test_a_page_table_in_any_order(poisoned):
    rows, W = rows_of(20)
    pages = torch.full((7, 5, LATENT + SHARED), torch.nan, dtype=torch.float64)
    table = torch.tensor([[4, 0, 6, 2], [1, 3, 5, 2]])
    lens = (18, 15)
    for b, n in enumerate(lens):
        for t in range(n):
            pages[table[b, t // 5], t % 5] = rows[b, t]
    q = made(3, 1)[0]
    got = absorbed(q, pages, table, lens, W)
    for b, n in enumerate(lens):
        want = expanded(q[b : b + 1], rows[b : b + 1, :n], W)
        assert gap(got[b : b + 1], want) < tolerances.of("mla", torch.float64)


def test_no_query():
    q, k, v = made(0, 6)
    assert mla.attend(q, k, v, SCALE).shape == (2, H, 0, V)
    rows, W = rows_of(6)
    assert absorbed(q, rows, None, (6, 6), W).shape == (2, H, 0, V)
    q, k, v = made(0, 0)
    assert mla.attend(q, k, v, SCALE).shape == (2, H, 0, V)


@pytest.mark.parametrize("rows", [2, 512])
def test_the_largest_logit_of_queries_behind_a_context(monkeypatch, rows):
    monkeypatch.setattr(mla, "LOGIT_ROWS", rows)
    q, k, _ = made(5, 9)
    seen = torch.arange(9) <= torch.arange(4, 9)[:, None]
    want = (q @ k.mT * SCALE).masked_fill(~seen, -torch.inf).amax((0, 2, 3))
    assert gap(mla.largest_logits(q, k, SCALE, 0.0), want) < 1e-12
