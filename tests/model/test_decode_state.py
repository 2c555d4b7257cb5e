"""DecodeState is a value: fork, rewind, pack, what it refuses, what it weighs."""

import pytest
import torch
from small import config, gap, ids, model, state_gap

from k3.config import sizes
from k3.errors import RequestError, ShapeError
from k3.model import DecodeState
from k3.model.cache import MLACache

KEEP = 6


@pytest.fixture(scope="module")
def net():
    return model(torch.float64)


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def after(net, tokens, keep=KEEP):
    return net(tokens, state=net.init_state(len(tokens), keep))[1]


def bits(state):
    return {name: x.clone() for name, x in state.fork().pack().items()}


def same_bits(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[n], b[n]) for n in a)


@pytest.mark.parametrize("size", [1, 4])
def test_a_fork_is_independent(net, size):
    state = after(net, ids(2, 9))
    fork, before = state.fork(), bits(state)
    _, stepped = net(ids(2, size, seed=7), state=fork)
    assert same_bits(bits(state), before)
    moved = bits(stepped)
    _, other = net(ids(2, size, seed=8), state=state)
    assert same_bits(bits(stepped), moved)
    assert state_gap(other, stepped) > 1e-3


def test_forks_share_nothing_that_grows_past_its_room(net):
    """Both outgrow the rows they share at the fork, by different tokens."""
    state = after(net, ids(1, 60))
    fork = state.fork()
    first, state = net(ids(1, 20, seed=1), state=state)
    _, fork = net(ids(1, 20, seed=2), state=fork)
    again, _ = net(ids(1, 20, seed=1), state=after(net, ids(1, 60)))
    assert torch.equal(first, again)


@pytest.mark.parametrize("copied", ["fork", "pack", "select"])
def test_a_copy_that_a_pass_came_into_is_refused(net, monkeypatch, copied):
    """As a pass in another thread may, which writes over what nobody else holds."""
    state, name = after(net, ids(1, 5)), "tensors" if copied == "pack" else copied
    real = getattr(MLACache, name)

    def between(cache, *given):
        monkeypatch.setattr(MLACache, name, real)
        net(ids(1, 1), state=state)
        return real(cache, *given)

    monkeypatch.setattr(MLACache, name, between)
    with pytest.raises(RequestError, match="spent"):
        getattr(state, copied)(*[[0]] * (copied == "select"))


@pytest.mark.parametrize("n", range(KEEP + 1))
@pytest.mark.parametrize("pieces", [[20], [14, 6], [3, 1, 1, 1], [19, 1], [2]])
def test_rewind_is_never_having_taken_the_tokens(net, poisoned, unchecked, n, pieces):
    total = sum(pieces)
    n, tokens, more = min(n, total), ids(2, total), ids(2, 5, seed=9)
    state = net.init_state(2, KEEP)
    for piece in tokens.split(pieces, 1):
        _, state = net(piece, state=state)
    back = state.rewind(n)
    want = after(net, tokens[:, : total - n])
    assert back.lens == (total - n,) * 2
    assert state_gap(back, want) < 1e-11
    got, went = net(more, state=back)
    wanted, want = net(more, state=want)
    assert gap(got, wanted) < 1e-11
    assert state_gap(went, want) < 1e-11


def test_rewind_again_and_again_between_steps(net, unchecked):
    """Drafts of three tokens, of which 0, 1, 2 and 3 are accepted."""
    state, taken = after(net, ids(1, 10)), ids(1, 10)
    for accepted in (0, 1, 2, 3, 1, 0):
        draft = ids(1, 3, seed=accepted)
        _, state = net(draft, state=state)
        state = state.rewind(3 - accepted)
        taken = torch.cat([taken, draft[:, :accepted]], 1)
        assert state_gap(state, after(net, taken)) < 1e-11
    state = state.rewind(1).rewind(2).rewind(0)
    assert state_gap(state, after(net, taken[:, :-3])) < 1e-11
    assert state.kept == (0,)


def test_rewind_after_packed_prefill_reaches_back_to_its_end(net):
    bounds, tokens = torch.tensor([0, 4, 11]), ids(1, 11)
    _, state = net(tokens, state=net.init_state(2, KEEP), cu_seqlens=bounds)
    before = state.fork()
    _, state = net(ids(2, 3, seed=5), state=state)
    with pytest.raises(RequestError, match="at most the 3 tokens"):
        state.rewind(4)
    assert state_gap(state.rewind(3), before) < 1e-11


def test_rewind_beyond_what_was_kept(net):
    state = after(net, ids(1, 20))
    with pytest.raises(
        RequestError,
        match=r"takes back at most the 6 tokens whose inputs were kept: got 7; call "
        r"init_state\(batch, keep_inputs=...\) with more",
    ):
        state.rewind(7)
    with pytest.raises(RequestError, match="got -1"):
        state.rewind(-1)
    assert state.rewind(6).lens == (14,)
    with pytest.raises(RequestError, match="at most the 0 tokens"):
        after(net, ids(1, 20), keep=0).rewind(1)


def test_a_spent_handle_is_refused(net):
    state = after(net, ids(1, 3))
    net(ids(1, 1), state=state)
    for use in (
        lambda: net(ids(1, 1), state=state),
        lambda: net.step(ids(1, 1), state),
        state.fork,
        state.pack,
        lambda: state.rewind(0),
    ):
        with pytest.raises(RequestError, match=r"spent once a forward pass has taken"):
            use()
    other = after(net, ids(1, 3))
    other.rewind(1)
    with pytest.raises(RequestError, match=r"fork\(\) before it"):
        other.rewind(1)


def test_a_pass_that_fails_half_way_spends_the_state(net, monkeypatch):
    """Its caches have moved by some layers: nobody may go on from there."""
    state = after(net, ids(1, 3))
    layer = net.language_model.model.layers[5]

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(layer, "forward", fail)
    with pytest.raises(KeyboardInterrupt):
        net(ids(1, 1), state=state)
    monkeypatch.undo()
    with pytest.raises(RequestError, match="spent"):
        net(ids(1, 1), state=state)


def test_a_refused_call_leaves_the_state(net):
    state = after(net, ids(2, 4))
    before = bits(state)
    bounds = torch.tensor([0, 0, 3])
    with pytest.raises(ShapeError, match="needs a token in every sequence"):
        net(ids(1, 3), state=state, cu_seqlens=bounds, logits="last")
    with pytest.raises(ShapeError, match="one placeholder token"):
        net(ids(2, 3), state=state, features=torch.zeros(1, 26))
    with pytest.raises(ShapeError, match=r"holds 2 sequences: got ids for 3"):
        net(ids(3, 1), state=state)
    with pytest.raises(RequestError, match="token ids must be in"):
        net(torch.tensor([[61], [0]]), state=state)
    assert same_bits(bits(state), before)
    net(ids(1, 3), state=state, cu_seqlens=bounds)


def test_other_weights_are_refused(net):
    state = after(net, ids(1, 3))
    net.weight_version += 1
    try:
        with pytest.raises(
            RequestError, match=r"has weight version \d+, the model \d+; run the tokens"
        ):
            net(ids(1, 1), state=state)
        assert net.init_state(1).weight_version == state.weight_version + 1
    finally:
        net.weight_version -= 1
    net(ids(1, 1), state=state)


def test_a_state_of_another_depth_is_refused(net):
    linear = {"full_attn_layers": [4], "kda_layers": [1, 2, 3]}
    other = model(torch.float64, config(num_hidden_layers=4, linear=linear))
    other.weight_version = net.weight_version
    with pytest.raises(ShapeError, match=r"holds 4 layers: got a model of 7"):
        net(ids(1, 1), state=other.init_state(1))


@pytest.mark.parametrize("keep", [0, KEEP])
def test_pack_and_unpack(net, keep):
    state = after(net, ids(2, 9), keep)
    packed = state.pack()
    again = DecodeState.unpack(packed)
    assert (again.lens, again.kept, again.keep_inputs) == ((9, 9), (keep, keep), keep)
    assert same_bits(again.pack(), packed)
    for x in packed.values():
        x.fill_(0)
    out, end = net(ids(2, 3, seed=3), state=again)
    want, wanted = net(ids(2, 3, seed=3), state=state)
    assert torch.equal(out, want)
    assert state_gap(end.rewind(keep), wanted.rewind(keep)) < 1e-14


def test_pack_of_a_ragged_state(net):
    bounds = torch.tensor([0, 4, 4, 11])
    _, state = net(ids(1, 11), state=net.init_state(3, KEEP), cu_seqlens=bounds)
    again = DecodeState.unpack(state.pack())
    assert again.lengths.tolist() == [4, 0, 7]
    out, _ = net(ids(3, 2), state=again)
    assert torch.equal(out, net(ids(3, 2), state=state)[0])


def renamed(packed, old, new):
    packed[new] = packed.pop(old)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda p: p.clear(), "header of 2 integers and 2 a"),
        (lambda p: p.update(header=torch.zeros(3).long()), "header of 2 integers"),
        (lambda p: p.update(header=torch.zeros(5)), "header of 2 integers and 2 a"),
        (lambda p: p.pop("layers.0.window"), r"all tensors of a layer: got layer 0"),
        (lambda p: p.pop("layers.2.base_state"), "all tensors of a layer"),
        (lambda p: p.pop("layers.3.rows"), r"every layer from 0 on"),
        (lambda p: renamed(p, "layers.3.rows", "layers.3.cows"), "all tensors of a"),
        (lambda p: p.update(other=torch.zeros(1)), r"named layers.N.NAME: got other"),
        (lambda p: p.update({"layers.0.rows": p["layers.3.rows"]}), "all tensors"),
        (lambda p: p.update(header=p["header"][[0, 1, 2, 4]]), r"of sizes \(1, "),
        (lambda p: p["header"][2:4].fill_(8), r"rows of sizes \(2, 8\): got \(2, 9\)"),
        (lambda p: p["header"][-2:].fill_(3), r"kept_\w+ of sizes \(2, 3\)"),
    ],
)
def test_a_damaged_pack_is_refused(net, damage, sentence):
    packed = after(net, ids(2, 9)).pack()
    damage(packed)
    with pytest.raises(ShapeError, match=sentence):
        DecodeState.unpack(packed)


def test_nbytes_is_exact(net):
    made = net.config
    for dtype, width in ((torch.bfloat16, 2), (torch.float32, 4)):
        narrow = model(dtype)
        for tokens in (0, 1, 70):
            state = narrow(ids(3, tokens), state=narrow.init_state(3))[1]
            assert state.nbytes == 3 * sizes.state_bytes(made, tokens, width)
            packed = state.pack()
            packed.pop("header")
            bytes_of = (x.numel() * x.element_size() for x in packed.values())
            assert state.nbytes == sum(bytes_of)


def test_position_is_per_sequence(net):
    state = net.init_state(3)
    assert state.lengths.tolist() == [0, 0, 0]
    assert state.batch == 3
    _, state = net(ids(3, 4), state=state)
    assert state.lengths.tolist() == [4, 4, 4]
    assert state.lengths.dtype == torch.int64


def test_negative_sizes_are_refused(net):
    with pytest.raises(ShapeError, match=r"must not be negative: got -1 and 0"):
        net.init_state(-1)
    with pytest.raises(ShapeError, match=r"must not be negative: got 1 and -2"):
        net.init_state(1, keep_inputs=-2)
