"""The caches of one layer: rows behind a page table, gradients, modes, room."""

import pytest
import torch
from small import gap, ids, model

from k3.kernels import mla
from k3.model.cache import MLACache

WIDTH = 24


@pytest.fixture(scope="module")
def net():
    return model(torch.float64)


def rows(*shape):
    return torch.randn(*shape, WIDTH, dtype=torch.float64)


def empty(batch):
    return MLACache(rows=rows(batch, 0), lens=(0,) * batch)


def test_rows_are_appended_and_forgotten():
    cache, new = empty(2), rows(2, 70)
    cache.append(new[:, :3])
    cache.append(new[:, 3:])
    assert cache.lens == (70, 70)
    assert torch.equal(cache.of(1), new[1])
    cache.rewind((4, 4))
    other = rows(2, 1)
    cache.append(other)
    assert torch.equal(cache.of(0), torch.cat([new[0, :66], other[0]]))


def test_room_grows_by_doubling(poisoned):
    cache, sizes = empty(1), set()
    for _ in range(300):
        cache.append(rows(1, 1))
        sizes.add(cache.rows.shape[1])
    assert sorted(sizes) == [64, 128, 256, 512]


def test_ragged_rows_packed_and_stepped():
    cache, new = empty(3), rows(1, 9)
    cache.append(new, (4, 0, 5))
    step = rows(3, 1)
    cache.append(step)
    assert cache.lens == (5, 1, 6)
    assert torch.equal(cache.of(0), torch.cat([new[0, :4], step[0]]))
    assert torch.equal(cache.of(1), step[1])
    assert torch.equal(cache.of(2), torch.cat([new[0, 4:], step[2]]))


def test_rows_behind_a_page_table(net, poisoned):
    """Pages of 4 in any order: the same output, rows and pack as without them."""
    attention = net.language_model.model.layers[3].self_attn
    plain = attention.init_cache(2, torch.zeros(1, dtype=torch.float64))
    table = torch.tensor([[5, 0, 3], [1, 4, 2]])
    paged = MLACache(torch.full((6, 4, WIDTH), torch.nan).double(), (0, 0), table)
    with torch.no_grad():
        for size in (3, 1, 1, 6):
            x = torch.randn(2, size, 26, dtype=torch.float64)
            assert gap(attention(x, paged), attention(x, plain)) < 1e-12
    assert torch.equal(paged.of(1), plain.of(1))
    assert torch.equal(paged.tensors()["rows"], plain.tensors()["rows"])
    fork = paged.fork()
    paged.append(rows(2, 1))
    assert fork.lens == (11, 11)
    assert torch.equal(fork.of(0), plain.of(0))


def test_gradients_flow_through_a_state(net, poisoned):
    """Token by token and with a state given: the gradients of the whole pass."""
    tokens = ids(1, 9)
    names, parameters = zip(*net.named_parameters(), strict=True)
    chosen = [p for n, p in zip(names, parameters, strict=True) if "layers.3." in n]
    chosen = [p for p in chosen if p.requires_grad]
    weight = torch.randn(61, generator=torch.Generator().manual_seed(0)).double()
    want = torch.autograd.grad((net(tokens) @ weight).sum(), chosen, allow_unused=True)
    state, total = net.init_state(1, keep_inputs=2), torch.zeros(()).double()
    for t in range(9):
        logits, state = net.step(tokens[:, t : t + 1], state)
        total = total + (logits @ weight).sum()
    got = torch.autograd.grad(total, chosen, allow_unused=True)
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        assert a is None or gap(a, b) < 1e-9


def test_an_initial_state_has_a_gradient(net):
    state = net.init_state(2)
    memory = torch.randn_like(state.caches[0].state).requires_grad_()
    window = torch.randn_like(state.caches[0].window).requires_grad_()
    state.caches[0].state, state.caches[0].window = memory, window
    logits, after = net(ids(2, 5), state=state)
    loss = logits.square().sum() + after.caches[0].state.sum()
    for grad in torch.autograd.grad(loss, [memory, window]):
        assert grad.isfinite().all()
        assert grad.abs().max() > 0


@pytest.mark.parametrize("keep", [0, 3])
def test_a_state_of_inference_mode_is_used_in_any_mode(net, keep):
    tokens, more = ids(2, 8), ids(2, 4, seed=2)
    want = net(torch.cat([tokens, more], 1))[:, 8:]
    with torch.inference_mode():
        _, state = net(tokens, state=net.init_state(2, keep))
        forks = [state.fork() for _ in range(3)]
    with torch.no_grad():
        assert gap(net(more, state=forks[0])[0], want) < 1e-11
    logits, after = net(more, state=forks[1])
    logits.sum().backward()
    net.zero_grad()
    assert gap(logits, want) < 1e-11
    with torch.inference_mode():
        assert gap(net(more, state=forks[2])[0], want) < 1e-11
    assert after.rewind(keep).lens == (12 - keep,) * 2


def test_stepping_without_gradients_leaves_an_earlier_graph(net):
    state = net.init_state(1)
    logits, state = net(ids(1, 5), state=state)
    loss = logits.square().sum()
    with torch.no_grad():
        for t in range(3):
            _, state = net.step(ids(1, 1, seed=t), state)
    loss.backward()
    net.zero_grad()


def test_a_fork_of_a_recorded_state_leaves_its_graph(net):
    state = net.init_state(1)
    logits, state = net(ids(1, 5), state=state)
    fork = state.fork()
    more, _ = net(ids(1, 2), state=fork)
    other, _ = net(ids(1, 2, seed=3), state=state)
    (logits.sum() + more.sum() + other.sum()).backward()
    net.zero_grad()


def test_nan_rows_behind_the_end_are_never_read(net, monkeypatch):
    monkeypatch.setattr(mla, "WORKSPACE_TOKENS", 4)
    with torch.no_grad():
        _, state = net(ids(2, 9), state=net.init_state(2))
        for cache in state.caches:
            if isinstance(cache, MLACache):
                cache.rows[:, 9:] = torch.nan
        for size in (1, 3):
            logits, _ = net(ids(2, size), state=state.fork())
            assert logits.isfinite().all()
