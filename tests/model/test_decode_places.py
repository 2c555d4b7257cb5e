"""Steps one after the other, where addresses are known from the step before."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from small import gap, ids, model, state_gap

import k3
from k3 import errors
from k3.kernels import choose
from k3.kernels.native import decode, library, marks
from k3.model.cache import KDACache, MLACache
from k3.model.decode_places import Places

pytestmark = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def net():
    return model()


@pytest.fixture
def entered(monkeypatch):
    """Count the steps that had to look where a state lies."""
    made, real = [], Places.enter
    monkeypatch.setattr(Places, "enter", lambda *a: (made.append(1), real(*a))[1])
    return made


def start(net, tokens, keep=0):
    with choose.use("torch"):
        return net(tokens, state=net.init_state(len(tokens), keep))[1]


def steps(net, kind, state, tokens):
    outs = []
    with choose.use(kind):
        for token in tokens.split(1, 1):
            out, state = net.step(token, state)
            outs.append(out)
    return torch.cat(outs, 1), state


def test_only_the_first_of_many_steps_looks_where_a_state_lies(poisoned, net, entered):
    more = ids(2, 70, seed=3)
    got, state = steps(net, "native", start(net, ids(2, 5)), more)
    # Once more, where the latent rows had no room left.
    assert len(entered) == 2
    want, expected = steps(net, "torch", start(net, ids(2, 5)), more)
    assert gap(got, want) < 1e-5
    assert state_gap(state, expected) < 1e-5


def test_two_states_in_turn_and_two_threads_at_once(net):
    more = ids(1, 12, seed=3)
    alone = [
        steps(net, "native", start(net, ids(1, n, seed=n)), more)[0] for n in (5, 9)
    ]
    states = [start(net, ids(1, n, seed=n)) for n in (5, 9)]
    outs = [[], []]
    for token in more.split(1, 1):
        for i in (0, 1):
            out, states[i] = steps(net, "native", states[i], token)
            outs[i].append(out)
    assert all(torch.equal(torch.cat(outs[i], 1), alone[i]) for i in (0, 1))

    made = [start(net, ids(1, n, seed=n)) for n in (5, 9)]

    def run(state):
        outs = []
        with torch.no_grad():
            for token in more.split(1, 1):
                out, state = net.step(token, state)
                outs.append(out)
        return torch.cat(outs, 1)

    with choose.use("native"), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, made))
    assert all(torch.equal(found[i], alone[i]) for i in (0, 1))


@pytest.mark.parametrize("change", ["window", "rows", "kept", "joined"])
def test_a_state_that_was_changed_is_looked_at(net, entered, change):
    _, state = steps(net, "native", start(net, ids(2, 5)), ids(2, 3, seed=3))
    plain = state.fork()
    if change == "window":
        state.caches[0].window = state.caches[0].window.clone()
    if change == "rows":
        cache = next(c for c in state.caches if isinstance(c, MLACache))
        cache.rows = cache.rows.clone()
    if change == "kept":
        state = state.keeping(2)
    if change == "joined":
        state = state.join([state.select([0]), state.select([1])])
    del entered[:]
    got, _ = steps(net, "native", state, ids(2, 1, seed=4))
    assert len(entered) == 1
    assert gap(got, steps(net, "torch", plain, ids(2, 1, seed=4))[0]) < 1e-5


def memories(state):
    return [c.state for c in state.caches if isinstance(c, KDACache)]


def test_memories_that_nobody_else_holds_are_written_over(net):
    more = ids(2, 6, seed=3)
    _, state = steps(net, "native", start(net, ids(2, 5)), more[:, :3])
    before = [x.data_ptr() for x in memories(state)]
    got, state = steps(net, "native", state, more[:, 3:])
    assert [x.data_ptr() for x in memories(state)] == before
    want, expected = steps(net, "torch", start(net, ids(2, 5)), more)
    assert gap(got, want[:, 3:]) < 1e-5
    assert state_gap(state, expected) < 1e-5


@pytest.mark.parametrize("holder", ["fork", "tensor", "view", "base", "lazy", "numpy"])
def test_memories_that_somebody_holds_are_not_written_over(net, holder):
    _, state = steps(net, "native", start(net, ids(2, 5)), ids(2, 3, seed=3))
    cache = next(c for c in state.caches if isinstance(c, KDACache))
    kept = {
        "fork": state.fork,
        "tensor": lambda: (cache.state, cache.window),
        "view": lambda: (cache.state[1:], cache.window[:, 1:]),
        "base": lambda: (cache.state._base, cache.window._base),
        "lazy": lambda: (torch._lazy_clone(cache.state),),
        "numpy": lambda: (cache.state.numpy(), cache.window.numpy()),
    }[holder]()
    seen = memories(kept) if holder == "fork" else kept
    # A deep copy would ask for a storage by name, and so hold it.
    before = [x + 0 for x in seen]
    steps(net, "native", state, ids(2, 2, seed=4))
    assert all(bool((a == b).all()) for a, b in zip(seen, before, strict=True))


def test_a_step_that_is_refused_leaves_memories_that_are_held_elsewhere(net):
    more = ids(1, 3, seed=4)
    _, state = steps(net, "native", start(net, ids(1, 5)), ids(1, 3, seed=3))
    fork = state.fork()
    with choose.use("native"), pytest.raises(errors.RequestError):
        net.step(torch.tensor([[10**6]]), state)
    del fork
    got, _ = steps(net, "native", state, more)
    want, _ = steps(
        net, "torch", start(net, ids(1, 5)), torch.cat([ids(1, 3, seed=3), more], 1)
    )
    assert gap(got, want[:, 3:]) < 1e-5


@pytest.mark.parametrize("kind", [KDACache, MLACache])
def test_memory_that_moves_to_other_processes_is_looked_for(net, kind):
    """As a queue of torch.multiprocessing moves what it is given."""
    _, state = steps(net, "native", start(net, ids(1, 5)), ids(1, 3, seed=3))
    plain = state.fork()
    for cache in state.caches:
        if isinstance(cache, kind):
            for x in cache.tensors().values():
                x.share_memory_()
    got, state = steps(net, "native", state, ids(1, 4, seed=4))
    want, expected = steps(net, "torch", plain, ids(1, 4, seed=4))
    assert gap(got, want) < 1e-5
    assert state_gap(state, expected) < 1e-5


def test_half_a_step_is_seen_by_nobody(net, monkeypatch):
    """Neither by who comes between, as another thread may, nor after an exception."""
    _, state = steps(net, "native", start(net, ids(1, 5)), ids(1, 3, seed=3))
    real = decode.step

    def interrupted(*given):
        real(*given)
        with pytest.raises(errors.RequestError, match="spent"):
            state.fork()
        raise KeyboardInterrupt

    monkeypatch.setattr(decode, "step", interrupted)
    with choose.use("native"), pytest.raises(KeyboardInterrupt):
        net.step(ids(1, 1, seed=4), state)
    with choose.use("native"), pytest.raises(errors.RequestError, match="spent"):
        net.step(ids(1, 1, seed=4), state)


def test_after_kept_inputs_nothing_is_written_to_them(net):
    state = start(net, ids(1, 5), keep=2)
    _, state = steps(net, "native", state, ids(1, 3, seed=3))
    kept = [x for cache in state.caches if hasattr(cache, "kept") for x in [cache.kept]]
    before = [x.clone() for inputs in kept for x in inputs.tensors()]
    steps(net, "native", state.keeping(0), ids(1, 3, seed=4))
    after = [x for inputs in kept for x in inputs.tensors()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("holds", [False, True])
def test_an_id_that_is_no_token_is_refused_and_the_state_is_not_spent(net, holds):
    _, state = steps(net, "native", start(net, ids(1, 5)), ids(1, 3, seed=3))
    held = state.fork() if holds else None
    before = {name: x.clone() for name, x in state.pack().items()}
    words = net.config.text.vocab_size
    for wrong in (-1, words):
        with (
            choose.use("native"),
            pytest.raises(errors.RequestError, match="token ids must be in"),
        ):
            net.step(torch.tensor([[wrong]]), state)
    after = state.pack()
    assert all(torch.equal(before[name], x) for name, x in after.items())
    del held
    got, _ = steps(net, "native", state.fork(), ids(1, 1, seed=4))
    assert gap(got, steps(net, "torch", state, ids(1, 1, seed=4))[0]) < 1e-5


def test_a_spent_state_and_one_of_another_batch_are_refused(net):
    _, state = steps(net, "native", start(net, ids(1, 5)), ids(1, 3, seed=3))
    with choose.use("native"):
        with pytest.raises(errors.ShapeError, match="holds 1 sequences"):
            net.step(ids(2, 1), state)
        net.step(ids(1, 1), state)
        with pytest.raises(errors.RequestError, match="spent"):
            net.step(ids(1, 1), state)


def test_another_default_dtype_changes_nothing(net):
    more = ids(2, 4, seed=3)
    want, _ = steps(net, "native", start(net, ids(2, 5), keep=2), more)
    torch.set_default_dtype(torch.float64)
    try:
        got, _ = steps(net, "native", start(net, ids(2, 5), keep=2), more)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(got, want)


@pytest.mark.parametrize("counted", [True, False])
def test_a_change_of_weights_between_steps_is_seen(net, monkeypatch, counted):
    """Whether the words of objects tell it, or every object is looked at."""
    if not counted:
        monkeypatch.setattr(marks, "words", lambda: None)
    changed, more = copy.deepcopy(net), ids(1, 1, seed=3)
    state = start(changed, ids(1, 5))
    _, state = steps(changed, "native", state, more)
    layers = changed.language_model.model.layers
    weight = layers[1].self_attn.q_proj.weight
    changes = [
        lambda: setattr(weight, "data", weight.data * 2),
        lambda: setattr(layers[2], "input_layernorm", layers[3].input_layernorm),
        lambda: weight.mul_(0.5),
    ]
    for change in changes:
        change()
        plain = state.fork()
        got, state = steps(changed, "native", state, more)
        assert gap(got, steps(changed, "torch", plain, more)[0]) < 1e-5


def test_what_the_kernel_is_handed_is_the_threads_own(net):
    steps(net, "native", start(net, ids(1, 5)), ids(1, 1))
    places = net._plans._plan.places
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: places.run).result()
    assert isinstance(other, decode.Run)
    assert other is not places.run


def test_memories_that_leave_the_caches_between_steps(poisoned):
    """As many as are written past them; any number of threads gives the same bits."""
    loaded, found = k3.load("tiny", dtype=torch.float32), []
    first = start(loaded, ids(7, 8))
    before = torch.get_num_threads()
    for kind, threads in (("torch", 1), ("native", 1), ("native", 2)):
        torch.set_num_threads(threads)
        found.append(steps(loaded, kind, first.fork(), ids(7, 2, seed=3)))
    torch.set_num_threads(before)
    (want, expected), (got, state), (other, same) = found
    assert gap(got, want) < 1e-5
    assert state_gap(state.fork(), expected) < 1e-5
    assert torch.equal(got, other)
    assert state_gap(state, same) == 0
