"""What a step leaves of its layers: the same names and values on both paths."""

import copy

import pytest
import torch
from small import gap, ids, model

import k3
from k3.kernels import choose
from k3.kernels.native import decode, library

needs_native = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def tapped(net, kind, tokens, *, keep=0, prompt=5):
    """Logits and taps of one step over all that follows a prompt."""
    with choose.use("torch"):
        _, state = net(tokens[:, :prompt], state=net.init_state(len(tokens), keep))
    taps = {}
    with choose.use(kind):
        logits, _ = net.step(tokens[:, prompt:], state, taps)
    return logits, taps


def names(net):
    layers = net.language_model.model.layers[: net.config.text.num_hidden_layers]
    sums = {f"layers.{i}.out_prefix" for i in range(len(layers))}
    chosen = {
        f"layers.{i}.block_sparse_moe.{kind}"
        for i, layer in enumerate(layers)
        for kind in ("index", "weights")
        if layer.sparse
    }
    return sums | chosen


@needs_native
@pytest.mark.parametrize("keep", [0, 4])
@pytest.mark.parametrize(("batch", "tokens"), [(1, 1), (3, 1), (1, 4), (3, 4)])
def test_a_steps_taps_are_pytorchs(poisoned, monkeypatch, batch, tokens, keep):
    net, given = model(), ids(batch, 5 + tokens)
    _, want = tapped(net, "torch", given, keep=keep)
    monkeypatch.setattr(type(net), "_whole", None)
    _, got = tapped(net, "native", given, keep=keep)
    assert set(got) == set(want) == names(net)
    for name, x in want.items():
        assert (got[name].shape, got[name].dtype) == (x.shape, x.dtype)
        if name.endswith("index"):
            assert torch.equal(got[name], x)
        else:
            assert gap(got[name], x) < 1e-5


@needs_native
@pytest.mark.parametrize("experts", ["packed", "dequantized"])
def test_in_bfloat16_a_sum_is_as_the_trunk_keeps_it(experts):
    """Against the shipped model in float64, no further than PyTorch's are."""
    net, exact = k3.load("tiny", experts=experts), k3.load("tiny", dtype=torch.float64)
    given = ids(2, 8)
    taps = {kind: tapped(net, kind, given)[1] for kind in ("native", "torch")}
    _, true = tapped(exact, "torch", given)
    for name, x in true.items():
        ours, theirs = (taps[kind][name] for kind in ("native", "torch"))
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        if name.endswith("out_prefix"):
            assert gap(ours, x) < 2 * gap(theirs, x) + 1e-2


@needs_native
def test_to_ask_changes_no_bit_and_not_to_ask_hands_over_nothing(monkeypatch):
    net, given, seen = model(), ids(2, 7), []
    real = decode.step

    def watched(given, run, is_bf16):
        seen.append((run.sums, run.index, run.weights))
        real(given, run, is_bf16)

    monkeypatch.setattr(decode, "step", watched)
    asked, _ = tapped(net, "native", given)
    with choose.use("torch"):
        _, state = net(given[:, :5], state=net.init_state(2))
    with choose.use("native"):
        plain, _ = net.step(given[:, 5:], state)
    assert torch.equal(asked, plain)
    assert all(seen[0])
    assert seen[1] == (None, None, None)


@needs_native
def test_pytorchs_step_fills_the_same_names():
    net = model()
    hooked = copy.deepcopy(net)
    hooked.language_model.model.layers[0].register_forward_hook(lambda *_: None)
    for each in (model(torch.float64), hooked):
        logits, taps = tapped(each, "native", ids(2, 7))
        assert set(taps) == names(net)
        last = taps[f"layers.{net.config.text.num_hidden_layers - 1}.out_prefix"]
        assert last.shape == (2, 2, net.config.text.hidden_size)
        assert logits.shape[:2] == (2, 2)


def test_taps_are_the_whole_passes_at_the_last_tokens():
    net, given = model(), ids(1, 8)
    whole = {}
    net(given, taps=whole)
    _, taps = tapped(net, "native" if library.load() else "torch", given)
    for name, x in taps.items():
        axis = 1 if name.endswith("out_prefix") else 0
        assert gap(x.double(), whole[name].narrow(axis, 5, 3).double()) < 1e-5
