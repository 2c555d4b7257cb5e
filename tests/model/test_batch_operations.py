"""Rows of a DecodeState join, are selected and go back each by its own count."""

import itertools
import random

import pytest
import tolerances
import torch
from small import gap, ids, model, state_gap

from k3.errors import RequestError, ShapeError
from k3.model import DecodeState
from k3.model.cache import ROOM, KDACache, MLACache

KEEP = 5
LENS = [3, 1, 40, 12, 7]
DTYPES = [torch.float32, torch.float64]
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def models():
    return {dtype: model(dtype) for dtype in DTYPES}


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def prompt(row):
    return ids(1, LENS[row], seed=row + 1)


def alone(net, row, more=(), keep=KEEP):
    """The state of one sequence after its prompt and more pieces."""
    _, state = net(prompt(row), state=net.init_state(1, keep))
    for piece in more:
        _, state = net(piece, state=state)
    return state


def bits(state):
    return {name: x.clone() for name, x in state.fork().pack().items()}


def same_bits(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[n], b[n]) for n in a)


def check_rows(state, want, tol):
    """Every row of a state is the state of one sequence."""
    for row, one in enumerate(want):
        assert state_gap(state.select([row]), one) <= tol
        assert state.kept[row] == one.kept[0]


@pytest.mark.parametrize(("dtype", "size"), [(DTYPES[0], 1), (DTYPES[1], 3)])
def test_joined_rows_go_on_as_they_would_alone(models, dtype, size):
    """Lengths 3, 1, 40, 12, 7, joined bitwise; then steps, and a pass of three."""
    net, rows = models[dtype], range(5)
    state = DecodeState.join([alone(net, row) for row in rows])
    assert state.lens == tuple(LENS)
    assert state.kept == (3, 1, 5, 5, 5)
    check_rows(state, [alone(net, row) for row in rows], 0)
    more = ids(5, 3 * size, seed=9).split(size, 1)
    tol = tolerances.of("state", dtype)
    for piece in more:
        logits, state = net(piece, state=state)
    for row in rows:
        own = [piece[row : row + 1] for piece in more]
        want, _ = net(own[-1], state=alone(net, row, own[:-1]))
        assert gap(logits[row : row + 1], want) < tol
    finals = [alone(net, row, [p[row : row + 1] for p in more]) for row in rows]
    check_rows(state, finals, tol)


@pytest.mark.parametrize("seed", range(2))
def test_each_row_goes_back_by_its_own_count(poisoned, models, seed):
    """Rounds of joins, passes, rewinds and leaving, against each row alone."""
    net, chance = models[torch.float64], random.Random(seed)
    texts = [prompt(row) for row in range(3)]
    state = DecodeState.join([alone(net, row) for row in range(3)])
    for round_ in range(8):
        size = chance.randint(1, KEEP)
        draft = ids(state.batch, size, seed=round_ + 100 * seed)
        _, state = net(draft, state=state)
        back = [chance.randint(0, n) for n in state.kept]
        state = state.rewind(back)
        texts = [
            torch.cat([text, draft[b : b + 1]], 1)[:, : text.shape[1] + size - n]
            for b, (text, n) in enumerate(zip(texts, back, strict=True))
        ]
        rows = [chance.randrange(state.batch) for _ in range(chance.randint(1, 3))]
        state, texts = state.select(rows), [texts[row] for row in rows]
        if state.batch < 4:
            state = DecodeState.join([alone(net, round_ % 5), state])
            texts = [prompt(round_ % 5), *texts]
    for row, text in enumerate(texts):
        assert state.lens[row] == text.shape[1]
        _, want = net(text, state=net.init_state(1, KEEP))
        assert state_gap(state.select([row]), want) < 1e-11


@pytest.mark.parametrize("keep", [1, 3, 20])
def test_rows_that_kept_other_counts_go_back_again(poisoned, models, keep):
    """Rewound unevenly, stepped past what is kept, rewound as far as it goes."""
    net, tokens = models[torch.float64], ids(3, 30, seed=3)
    _, state = net(tokens[:, :20], state=net.init_state(3, keep))
    state = state.rewind([0, min(2, keep), keep])
    at = list(state.lens)
    for _ in range(3):
        last = torch.stack([tokens[b, n : n + 1] for b, n in enumerate(at)])
        _, state = net.step(last, state)
        at = [n + 1 for n in at]
    assert state.lens == tuple(at)
    state = state.rewind(state.kept)
    for row, n in enumerate(state.lens):
        _, want = net(tokens[row : row + 1, :n], state=net.init_state(1, keep))
        assert state_gap(state.select([row]), want) < 1e-11


def test_a_row_that_does_not_go_back_keeps_every_bit(models):
    net = models[torch.float32]
    _, state = net(ids(3, 9), state=net.init_state(3, KEEP))
    before = bits(state.select([0, 2]))
    after = bits(state.rewind([0, 3, 0]).select([0, 2]))
    assert same_bits(before, after)


def test_packed_pass_over_joined_rows(poisoned, models):
    net, lens = models[torch.float64], [2, 0, 4]
    state = DecodeState.join([alone(net, row) for row in (2, 0, 1)])
    more = ids(1, 6, seed=4)
    bounds = torch.tensor([0, *itertools.accumulate(lens)])
    logits, state = net(more, state=state, cu_seqlens=bounds)
    assert state.lens == (42, 3, 5)
    assert state.kept == (0, 0, 0)
    for row, part, own in zip(
        (2, 0, 1), logits[0].split(lens), more[0].split(lens), strict=True
    ):
        want, _ = net(own[None], state=alone(net, row))
        assert gap(part[None], want) < 1e-11


def test_states_with_and_without_kept_inputs_join(models):
    """After a packed prefill nothing is kept; beside it stands a row that kept five."""
    net, bounds = models[torch.float64], torch.tensor([0, 4, 11])
    _, fresh = net(ids(1, 11), state=net.init_state(2, KEEP), cu_seqlens=bounds)
    state = DecodeState.join([fresh, alone(net, 3), net.init_state(1, KEEP)])
    assert state.kept == (0, 0, 5, 0)
    _, state = net(ids(4, 2, seed=6), state=state)
    assert state.kept == (2, 2, 5, 2)
    state = DecodeState.unpack(state.pack()).rewind([2, 1, 5, 0])
    assert state.lens == (4, 8, 9, 2)
    _, want = net(prompt(3)[:, :9], state=net.init_state(1, KEEP))
    assert state_gap(state.select([2]), want) < 1e-11


@pytest.mark.parametrize("rows", [[], [4], [1, 1, 1], [4, 3, 2, 1, 0], [2, 0, 2]])
def test_selected_rows_are_copies_in_that_order(models, rows):
    net = models[torch.float64]
    state = DecodeState.join([alone(net, row) for row in range(5)])
    before = bits(state)
    picked = state.select(rows)
    assert picked.lens == tuple(LENS[row] for row in rows)
    _, stepped = net.step(ids(len(rows), 1, seed=2), picked)
    assert same_bits(bits(state), before)
    wants = [
        alone(net, row, [ids(len(rows), 1, seed=2)[i : i + 1]])
        for i, row in enumerate(rows)
    ]
    check_rows(stepped, wants, 1e-11)


def test_join_refuses(models):
    net = models[torch.float32]
    with pytest.raises(RequestError, match=r"at least one state: got none; call init_"):
        DecodeState.join([])
    state, spent = net.init_state(1, 2), net.init_state(1, 2)
    net(ids(1, 1), state=spent)
    with pytest.raises(RequestError, match="spent once a forward pass has taken it"):
        DecodeState.join([state, spent])
    with pytest.raises(RequestError, match=r"got one twice; select\(\) repeats rows"):
        DecodeState.join([state, state])
    with pytest.raises(RequestError, match=r"same number of inputs: got .* 2 and 3"):
        DecodeState.join([state, net.init_state(1, 3)])
    other = net.init_state(1, 2)
    other.weight_version += 1
    with pytest.raises(RequestError, match="belongs to the weights that made it"):
        DecodeState.join([state, other])
    assert not state.spent
    DecodeState.join([state])
    with pytest.raises(RequestError, match="spent"):
        DecodeState.join([state])
    with pytest.raises(RequestError, match="spent"):
        state.select([0])


def test_select_and_rewind_refuse(models):
    net = models[torch.float32]
    _, state = net(ids(2, 4), state=net.init_state(2, KEEP))
    with pytest.raises(RequestError, match=r"rows must be from 0 to 1, of 2 .*: got 2"):
        state.select([0, 2])
    with pytest.raises(RequestError, match="got -1"):
        state.select([-1])
    with pytest.raises(ShapeError, match="select takes the numbers of rows: got True"):
        state.select([True])
    with pytest.raises(ShapeError, match="one for each of 2 sequences: got 3"):
        state.rewind([1, 1, 1])
    with pytest.raises(ShapeError, match="whole number of tokens: got '11'"):
        state.rewind("11")
    with pytest.raises(RequestError, match=r"at most the 4 tokens .*: got 5"):
        state.rewind([0, 5])
    assert state.rewind([0, 4]).lens == (4, 0)


def test_join_and_select_copy_what_is_carried(models):
    """The stated cost: what is carried, up to the longest row, and room for more."""
    net = models[torch.float32]
    state = DecodeState.join([alone(net, row, keep=0) for row in range(5)])
    for cache in state.caches:
        if isinstance(cache, MLACache):
            assert cache.rows.shape[:2] == (5, max(LENS) + ROOM)
        else:
            assert isinstance(cache, KDACache)
            assert cache.state.shape[0] == 5


def test_a_state_keeps_what_comes_after_it_was_told_to(models):
    net = models[torch.float64]
    state = DecodeState.join([alone(net, row, keep=0) for row in (0, 3)]).keeping(4)
    assert (state.keep_inputs, state.kept) == (4, (0, 0))
    before = state.fork()
    _, state = net(ids(2, 3, seed=5), state=state)
    assert state_gap(state.fork().rewind(3), before) < 1e-11
    assert state.keeping(2).kept == (0, 0)
    with pytest.raises(RequestError, match="spent"):
        state.rewind(1)
