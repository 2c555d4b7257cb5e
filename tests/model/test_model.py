"""The contract of Model: its call, its names, what it refuses, odd inputs."""

import json
from pathlib import Path

import numpy as np
import pytest
import tolerances
import torch
from small import MEDIA, TINY, config, gap, ids, model

from k3.checkpoint import names
from k3.config import K3Config
from k3.errors import RequestError, ShapeError
from k3.model import Model

DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32, "U8": torch.uint8}
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def net():
    return model(torch.float64, config(vision={}))


def text14():
    return K3Config.from_dict(
        json.loads(np.load(GOLDEN / "text14.npz")["config"].item())
    )


CONFIGS = {
    "tiny_release": (lambda: K3Config.load(TINY), "packed"),
    "tiny_release_dense": (lambda: K3Config.load(TINY), "dense"),
    "text14": (text14, "dense"),
    "mtp": (lambda: config(num_nextn_predict_layers=1), "dense"),
    "divided": (lambda: config(vision={"attention": "divided"}), "dense"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_the_table_of_the_checkpoint(name):
    """Names, shapes and dtypes, written twice and compared; nothing is allocated."""
    build, experts = CONFIGS[name]
    made = build()
    kind = "packed" if experts == "packed" else "dequantized"
    state = Model(made, device="meta", experts=kind).state_dict()
    prefix = "language_model." if made.bare else ""
    table = {prefix + n: entry for n, entry in names.expected(made, experts).items()}
    assert state.keys() == table.keys()
    for key, (shape, dtype) in table.items():
        assert state[key].dtype == DTYPES[dtype], key
        if key.endswith("A_log"):
            heads = made.text.linear_attn_config.num_heads
            assert tuple(state[key].shape) == (heads,)
        else:
            assert tuple(state[key].shape) == shape, key


def test_a_log_remembers_its_padded_length(net):
    layer = net.language_model.model.layers[0].self_attn
    assert (layer.A_log.shape, layer.A_log_stored) == ((5,), 12)


def test_logits_of_the_last_token(net):
    tokens = ids(3, 9)
    every, last = net(tokens), net(tokens, logits="last")
    assert last.shape == (3, 1, 61)
    assert gap(last, every[:, -1:]) < 1e-12
    bounds = torch.tensor([0, 2, 9])
    every = net(tokens[:1], cu_seqlens=bounds)
    last = net(tokens[:1], cu_seqlens=bounds, logits="last")
    assert last.shape == (2, 1, 61)
    assert gap(last[:, 0], every[0, [1, 8]]) < 1e-12


def test_logits_are_fp32_or_wider():
    for dtype, want in ((torch.bfloat16, torch.float32), (torch.float64,) * 2):
        assert model(dtype)(ids(1, 3)).dtype == want


def test_taps_have_names_and_do_not_change_the_logits(net):
    taps = {}
    tokens = ids(2, 5)
    assert torch.equal(net(tokens, taps=taps), net(tokens))
    want = {"embed_tokens", "output_attn_res"}
    parts = ("scores", "index", "weights")
    for i in range(7):
        want |= {f"layers.{i}.self_attn", f"layers.{i}.out_prefix"}
        if i:
            want |= {f"layers.{i}.block_sparse_moe.{n}" for n in parts}
    assert set(taps) == want
    assert taps["layers.6.block_sparse_moe.index"].shape == (10, 3)


def test_features_replace_placeholders_in_order(net):
    tokens = ids(2, 6)
    tokens[0, 1:3] = tokens[1, 4] = MEDIA
    features = torch.randn(3, 26, dtype=torch.float64, requires_grad=True)
    taps = {}
    logits = net(tokens, features=features, taps=taps)
    x = taps["embed_tokens"]
    assert torch.equal(x[0, 1:3], features[:2])
    assert torch.equal(x[1, 4], features[2])
    table = net.language_model.model.embed_tokens.weight
    assert torch.equal(x[0, 3:], table[tokens[0, 3:]])
    (grad,) = torch.autograd.grad(logits.square().sum(), features)
    assert (grad.abs().amax(1) > 0).all()


def test_features_over_several_passes(net):
    """Each pass gets the rows of its own placeholders."""
    tokens = ids(1, 8)
    tokens[0, 2:6] = MEDIA
    features = torch.randn(4, 26, dtype=torch.float64)
    want = net(tokens, features=features)
    _, state = net(tokens[:, :4], state=net.init_state(1), features=features[:2])
    got, _ = net(tokens[:, 4:], state=state, features=features[2:])
    assert gap(got, want[:, 4:]) < 1e-11


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_features_and_placeholders_differ_in_number(net, rows):
    tokens = ids(1, 5)
    tokens[0, 1:3] = MEDIA
    with pytest.raises(ShapeError, match=rf"got {rows} rows for 2 placeholders; exp"):
        net(tokens, features=torch.zeros(rows, 26))


def test_features_of_another_width(net):
    tokens = torch.full((1, 2), MEDIA)
    for width in (13, 52):
        with pytest.raises(ShapeError, match=rf"of the text, 26: got {width}; pass"):
            net(tokens, features=torch.zeros(2, width))


@pytest.mark.parametrize("bounds", [[0, 4], [0, 3, 2, 5], [1, 5], [0, 6], [5]])
def test_wrong_boundaries(net, bounds):
    with pytest.raises(ShapeError, match="cu_seqlens must start at 0"):
        net(ids(1, 5), cu_seqlens=torch.tensor(bounds))


def test_packed_sequences_come_in_one_row(net):
    with pytest.raises(ShapeError, match=r"one row, ids \[1 T\]: got 2 rows"):
        net(ids(2, 5), cu_seqlens=torch.tensor([0, 5]))
    with pytest.raises(ShapeError, match="holds 1 sequences: got ids for 2"):
        net(ids(1, 5), cu_seqlens=torch.tensor([0, 2, 5]), state=net.init_state(1))


@pytest.mark.parametrize("wrong", [-1, 61, 2**40])
def test_token_ids_out_of_range(net, wrong):
    tokens = torch.tensor([[3, wrong]])
    with pytest.raises(RequestError, match=r"token ids must be in 0 \.\. 60: got"):
        net(tokens)


def test_ids_of_another_rank(net, unchecked):
    with pytest.raises(ShapeError, match=r"ids are \[B T\]: got \(4,\); add the batch"):
        net(torch.arange(4))


def test_unknown_options(net, unchecked):
    with pytest.raises(RequestError, match=r"'all' or 'last': got 'first'"):
        net(ids(1, 3), logits="first")
    with pytest.raises(TypeError):
        net(ids(1, 3), positions=None)


def test_no_token_and_no_sequence(net, poisoned):
    none, state = net(ids(2, 0), state=net.init_state(2))
    assert none.shape == (2, 0, 61)
    assert state.lens == (0, 0)
    assert net(ids(0, 4)).shape == (0, 4, 61)
    for size in (4, 1, 0):
        out, state = net(ids(0, size), state=net.init_state(0, keep_inputs=2))
        assert out.shape == (0, size, 61)
        assert state.lens == ()
    out = net(ids(1, 0), cu_seqlens=torch.tensor([0, 0, 0]))
    assert out.shape == (1, 0, 61)


def test_packed_sequences_do_not_see_each_other(net, poisoned):
    lens, tokens = [4, 0, 7, 3], ids(1, 14)
    bounds = torch.tensor([0, 4, 4, 11, 14])
    before = net(tokens, cu_seqlens=bounds)
    changed = tokens.clone()
    changed[0, 4:11] = ids(1, 7, seed=99)
    after = net(changed, cu_seqlens=bounds)
    keep = torch.ones(14, dtype=torch.bool)
    keep[4:11] = False
    assert gap(after[0, keep], before[0, keep]) < 1e-12
    assert gap(after[0, ~keep], before[0, ~keep]) > 1e-3
    start = 0
    for n in lens:
        alone = net(tokens[:, start : start + n])
        assert gap(before[:, start : start + n], alone) < 1e-11
        start += n


def test_nan_propagates_to_what_follows_and_stays_in_its_row(net):
    tokens = ids(2, 9)
    tokens[0, 4] = MEDIA
    features = torch.full((1, 26), torch.nan, dtype=torch.float64)
    logits = net(tokens, features=features)
    assert logits[0, 4:].isnan().all()
    assert logits[1].isfinite().all()


def test_the_pass_is_causal(net):
    tokens = ids(1, 20)
    before = net(tokens)
    tokens[0, 13] = (tokens[0, 13] + 1) % 57
    after = net(tokens)
    assert gap(after[:, :13], before[:, :13]) < 1e-12
    assert all(gap(after[:, t], before[:, t]) > 1e-6 for t in range(13, 20))


def test_ids_of_any_layout_and_integer_width(net):
    tokens = ids(3, 8)
    want = net(tokens)
    assert torch.equal(net(tokens.int()), want)
    assert torch.equal(net(tokens.T.contiguous().T), want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_narrow_models_against_fp64(dtype, poisoned, unchecked):
    """Same weights, drawn in the narrow dtype so that only arithmetic differs."""
    made = config(num_experts_per_token=11)
    narrow, wide = model(dtype, made), model(dtype, made).double()
    tokens = ids(2, 24)
    with torch.no_grad():
        want = wide(tokens)
        got = narrow(tokens)
        state, steps = narrow.init_state(2), []
        for t in range(24):
            out, state = narrow.step(tokens[:, t : t + 1], state)
            steps.append(out)
    for x in (got, torch.cat(steps, 1)):
        error = (x.double() - want).abs().mean() / want.abs().max()
        assert error < tolerances.of("model", dtype)
    assert state.caches[0].state.dtype == torch.float32
