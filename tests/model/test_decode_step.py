"""The native decode step against the PyTorch path, and when it is not taken."""

import copy
import ctypes
import dataclasses
from contextlib import contextmanager

import pytest
import torch
from small import TINY, config, gap, ids, model, state_gap

import k3
from k3.kernels import choose, moe
from k3.kernels.native import decode, library
from k3.model import decode_step
from k3.model.cache import MLACache
from k3.model.experts import Experts

pytestmark = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2}


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def net():
    return model()


def run(net, kind, tokens, keep=0, prompt=5):
    """Logits of each step after a prompt, and the state at the end."""
    with choose.use("torch"):
        logits, state = net(tokens[:, :prompt], state=net.init_state(len(tokens), keep))
    outs = []
    with choose.use(kind):
        for t in range(prompt, tokens.shape[1]):
            logits, state = net.step(tokens[:, t : t + 1], state)
            outs.append(logits)
    return torch.cat(outs, 1), state


@pytest.fixture
def calls(monkeypatch):
    """Count native steps."""
    made, real = [], decode.step

    def counted(*args):
        made.append(args)
        return real(*args)

    monkeypatch.setattr(decode, "step", counted)
    return made


@contextmanager
def only(threads):
    """So many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_a_step_is_pytorchs(poisoned, calls, net, batch):
    tokens = ids(batch, 12)
    got, state = run(net, "native", tokens)
    assert len(calls) == 7
    want, expected = run(net, "torch", tokens)
    assert gap(got, want) < 1e-5
    assert state_gap(state, expected) < 1e-5


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("experts", ["packed", "dequantized"])
def test_a_step_of_a_checkpoint_is_pytorchs(calls, dtype, experts):
    loaded = k3.load("tiny", dtype=dtype, experts=experts)
    tokens = ids(2, 9)
    got, state = run(loaded, "native", tokens)
    assert len(calls) == 4
    want, expected = run(loaded, "torch", tokens)
    assert gap(got, want) < TOLERANCE[dtype]
    assert state_gap(state, expected) < TOLERANCE[dtype]


def test_a_row_of_a_batch_is_the_row_alone(net):
    tokens = ids(4, 9)
    got, _ = run(net, "native", tokens)
    alone = [run(net, "native", tokens[b : b + 1], prompt=5)[0] for b in range(4)]
    assert gap(got, torch.cat(alone)) < 1e-5


def test_sequences_of_different_lengths(net):
    whole = [
        run(net, "native", ids(1, 6 + b, seed=b), prompt=6 + b - 1) for b in (1, 4)
    ]
    joined = type(whole[0][1]).join([state for _, state in whole])
    parts = [
        state
        for _, state in [
            run(net, "torch", ids(1, 6 + b, seed=b), prompt=5 + b) for b in (1, 4)
        ]
    ]
    token = ids(2, 1, seed=9)
    with choose.use("native"):
        got, _ = net.step(token, joined)
    with choose.use("torch"):
        want = [net.step(token[b : b + 1], parts[b])[0] for b in range(2)]
    assert gap(got, torch.cat(want)) < 1e-5


def test_inputs_are_kept_for_a_rewind(poisoned, net):
    tokens = ids(2, 12)
    results = []
    for kind in ("native", "torch"):
        _, state = run(net, kind, tokens, keep=3)
        results.append(state.rewind(2))
    assert state_gap(*results) < 1e-5


def test_the_state_is_a_value(net):
    _, state = run(net, "native", ids(2, 8))
    fork = state.fork()
    before = {name: x.clone() for name, x in fork.pack().items()}
    with choose.use("native"):
        net.step(ids(2, 1, seed=3), state)
    assert all(torch.equal(before[name], x) for name, x in fork.pack().items())


def test_a_mapped_checkpoint(calls):
    mapped = k3.load("tiny", dtype=torch.float32, experts="mmap")
    tokens = ids(1, 8)
    got, _ = run(mapped, "native", tokens)
    assert len(calls) == 3
    assert gap(got, run(mapped, "torch", tokens)[0]) < 1e-5


def test_a_long_context_has_its_rows(net):
    tokens = ids(1, 150)
    got, state = run(net, "native", tokens, prompt=147)
    want, expected = run(net, "torch", tokens, prompt=147)
    assert gap(got, want) < 1e-5
    assert state_gap(state, expected) < 1e-5


@pytest.mark.parametrize("lens", [(31, 33), (1023, 64), (1056, 2049)])
def test_a_context_of_several_parts_and_tiles(poisoned, calls, net, lens):
    """Rows as a longer prompt would have left them; scores far apart and even."""
    generator = torch.Generator().manual_seed(0)
    state = net(ids(2, 5), state=net.init_state(2))[1]
    for i, cache in enumerate(state.caches):
        if isinstance(cache, MLACache):
            rows = torch.randn(2, 2049, cache.rows.shape[2], generator=generator)
            cache.rows, cache.lens = rows * (40 if i % 2 else 1), lens
    state = dataclasses.replace(state, lens=lens)
    found = []
    for kind, threads in (("torch", 1), ("native", 1), ("native", 2)):
        with choose.use(kind), only(threads):
            found.append(net.step(ids(2, 1, seed=3), state.fork())[0])
    assert len(calls) == 2
    assert gap(found[1], found[0]) < 1e-5
    assert torch.equal(found[1], found[2])


def test_rounded_activations_are_pytorchs_to_run(calls):
    loaded, tokens = k3.load("tiny", experts="dequantized"), ids(1, 7)
    before = run(loaded, "native", tokens)[0]
    assert len(calls) == 2
    for module in loaded.modules():
        if isinstance(module, Experts):
            module.activations = "mxfp8"
    got = run(loaded, "native", tokens)[0]
    assert len(calls) == 2
    assert not torch.equal(got, before)


def test_an_unbounded_gate():
    made = config()
    # Only a bare kimi_linear config has it, with other widths.
    object.__setattr__(made.text.linear_attn_config, "gate_lower_bound", None)
    other = model(made=made)
    tokens = ids(2, 8)
    got, _ = run(other, "native", tokens)
    assert gap(got, run(other, "torch", tokens)[0]) < 1e-5


def test_weights_changed_in_place_or_replaced_are_seen(calls, net):
    changed, tokens = copy.deepcopy(net), ids(1, 7)
    run(changed, "native", tokens)
    text = changed.language_model
    text.model.layers[1].self_attn.q_proj.weight.mul_(1.5)
    assert gap(*(run(changed, k, tokens)[0] for k in ("native", "torch"))) < 1e-5
    text.lm_head.weight = torch.nn.Parameter(text.lm_head.weight * 0.5)
    assert gap(*(run(changed, k, tokens)[0] for k in ("native", "torch"))) < 1e-5
    weight = text.model.layers[2].input_layernorm.weight
    weight.data = weight.data * 2
    assert gap(*(run(changed, k, tokens)[0] for k in ("native", "torch"))) < 1e-5
    assert len(calls) == 8


def hooked(net):
    net.language_model.model.layers[0].register_forward_hook(lambda *_: None)


def dispatched(net):
    layer = net.language_model.model.layers[1].block_sparse_moe
    layer.dispatch = lambda *args: moe.combine(*args)


def wrapped(net):
    class Other(torch.nn.Linear):
        pass

    head = net.language_model.lm_head
    other = Other(head.in_features, head.out_features, bias=False)
    other.weight = head.weight
    other.forward = lambda x: head(x) * 2
    net.language_model.lm_head = other


@pytest.mark.parametrize("change", [hooked, dispatched, wrapped])
def test_what_the_kernel_does_not_know_runs_on_pytorch(calls, net, change):
    changed = copy.deepcopy(net)
    tokens = ids(1, 7)
    run(changed, "native", tokens)
    assert len(calls) == 2
    change(changed)
    run(changed, "native", tokens)
    assert len(calls) == 2


def test_float64_and_gradients_run_on_pytorch(calls, net):
    run(model(torch.float64), "native", ids(1, 7))
    with torch.enable_grad():
        run(net, "native", ids(1, 7))
    run(net, "native", ids(decode_step.MAX_BATCH + 1, 7))
    assert not calls


def test_a_broken_state_is_refused_before_the_kernel_reads_it(calls, net):
    _, state = run(net, "native", ids(1, 7))
    state.caches[0].state = state.caches[0].state[:, :1]
    with choose.use("native"), pytest.raises(k3.errors.ShapeError, match="layer 0"):
        net.step(ids(1, 1), state)
    assert len(calls) == 2


def test_structures_have_the_same_bytes():
    found = (ctypes.c_int64 * 5)()
    library.function("k3_decode_bytes", "p")(ctypes.addressof(found))
    kinds = (decode.Sizes, decode.Layer, decode.Carried, decode.Model, decode.Run)
    assert list(found) == [ctypes.sizeof(kind) for kind in kinds]


def test_greedy_text_is_that_of_pytorch():
    loaded = k3.load(TINY, dtype=torch.float32)
    texts = []
    for kind in ("native", "torch"):
        with choose.use(kind):
            logits, state = loaded(ids(1, 9), state=loaded.init_state(1))
            text = []
            for _ in range(12):
                token = logits[:, -1].argmax(-1, keepdim=True)
                text.append(int(token))
                logits, state = loaded.step(token, state)
            texts.append(text)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("keep", [0, 6])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_block_is_its_tokens_one_by_one(poisoned, calls, net, size, keep):
    """Verifying a drafted block gives every bit that single steps give."""
    more, outs = ids(3, size, seed=4), []
    with choose.use("native"):
        _, state = net(ids(3, 9), state=net.init_state(3, keep))
        single = state.fork()
        block, state = net.step(more, state)
        assert len(calls) == 1
        for token in more.split(1, 1):
            out, single = net.step(token, single)
            outs.append(out)
        back = [min(n, keep) for n in (0, 1, size)]
        assert torch.equal(block, torch.cat(outs, 1))
        assert state_gap(state.fork(), single.fork()) == 0
        assert state_gap(state.rewind(back), single.rewind(back)) == 0


def test_a_block_longer_than_what_is_kept_runs_in_pytorch(calls, net):
    _, state = net(ids(1, 4), state=net.init_state(1, 2))
    _, state = net.step(ids(1, 3), state)
    assert not calls
    assert state.kept == (2,)
