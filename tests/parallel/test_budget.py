"""The formulas of k3 plan against what the tiny model holds, and what must add up."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from k3 import recipes
from k3.config import sizes
from k3.errors import ConfigError, RequestError
from k3.kernels import choose
from k3.model import Model
from k3.parallel import activation_sizes, layout, saved
from k3.parallel.budget import Setup, budget, in_flight, sent_bytes, stage_weights
from k3.parallel.mesh import Mesh
from k3.parallel.suggest import suggest

TOKENS = 96


@pytest.fixture(scope="module")
def tiny():
    return recipes.tiny().config


@pytest.fixture(scope="module")
def released():
    return recipes.released()


@pytest.mark.skipif(not choose.ready(), reason="formulas are of the native kernels")
def test_activations_are_what_the_tiny_model_leaves(tiny):
    """bfloat16, every policy keep: by unit and in all, within 3 %."""
    model = Model(tiny, dtype=torch.bfloat16).init_weights(0)
    ids = torch.randint(0, 1000, (1, TOKENS + 1))

    def loss():
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[0, 1:])

    text, found = tiny.text, {}
    for s in saved.survey(model, loss).saved:
        found[s.unit] = found.get(s.unit, 0) + s.nbytes
    layers = range(text.num_hidden_layers)
    for i in layers:
        names = "self_attn", "block_sparse_moe" if text.is_moe(i) else "mlp"
        for name, left in zip(names, activation_sizes.unit(text, i), strict=True):
            got = found[f"language_model.model.layers.{i}.{name}"]
            fixed = constants(text, name, i)
            assert left.bytes() * TOKENS == pytest.approx(got - fixed, rel=0.03)
    rest = activation_sizes.depth(text, 0, len(layers)) + activation_sizes.head(text)
    assert rest.bytes() * TOKENS == pytest.approx(found["rest"], rel=0.03)


def constants(text, name, layer):
    """Bytes that do not grow with tokens: first memory and window, fp32 weights."""
    if name == "block_sparse_moe":
        return 4 * text.num_experts * text.hidden_size
    if name == "mlp" or text.is_mla(layer):
        return 0
    taps = text.linear_attn_config.short_conv_kernel_size
    channels = text.conv_window_scalars // (taps - 1)
    return (
        4 * text.kda_state_scalars + 4 * taps * channels + text.conv_window_scalars * 2
    )


@pytest.mark.parametrize("name", ["tiny", "released", "paper"])
def test_parameters_of_all_stages_are_those_of_the_model(name):
    made = getattr(recipes, name)()
    config = made if name != "tiny" else made.config
    count = sizes.parameters(config)
    for pipeline, expert, virtual in ((1, 1, 1), (3, 2, 1), (2, 4, 2)):
        setup = Setup(mesh=Mesh(pipeline=pipeline, expert=expert), virtual=virtual)
        chunks = layout.chunks(config.text, pipeline, virtual)
        stages = [
            stage_weights(config, setup, chunks[s::pipeline]) for s in range(pipeline)
        ]
        total = sum(w.trunk + expert * w.experts for w in stages)
        assert total == count.total + count.mtp
        assert all(w.largest <= w.trunk + w.experts for w in stages)


def test_more_ranks_hold_less_and_send_more(released):
    few = budget(released, Setup(mesh=Mesh(data=8, expert=8, pipeline=4)))
    many = budget(released, Setup(mesh=Mesh(data=16, expert=8, pipeline=4)))
    for name in ("weights", "gradients", "master weights", "optimizer"):
        assert many.memory[name] == pytest.approx(few.memory[name] / 2, rel=1e-6)
    assert many.memory["activations"] == few.memory["activations"]
    assert many.sent["data"] > few.sent["data"]
    assert many.bubble == few.bubble == 3 / 8


def test_one_rank_sends_nothing(tiny):
    found = budget(tiny, Setup())
    assert set(found.sent.values()) == {0}
    assert found.memory["gathered weights"] == found.memory["buffers"] == 0


def test_summaries_cost_the_same_at_any_length_and_rows_grow(released):
    text = released.text
    setup = Setup(mesh=Mesh(context=4), micros=1, policy="keep")
    chunks = layout.chunks(text, 1)
    weights = stage_weights(released, setup, chunks)
    sent = [
        sent_bytes(text, replace(setup, tokens=t), weights, chunks)["context"]
        for t in (4096, 8192, 12288)
    ]
    # Rows of 24 MLA layers alone tell them apart: 1,024 tokens more a rank.
    step = 2 * 24 * 3 * 1024 * 576 * 2
    assert sent[1] - sent[0] == sent[2] - sent[1] == step


def test_plain_experts_need_r_times_the_rows(released):
    base = Setup(mesh=Mesh(expert=8), tokens=4096)
    rows = 2 * 4096 * 16 * 3584 * 2
    plain = budget(released, replace(base, balanced=False)).memory["buffers"]
    assert plain == 8 * rows
    # ceil(896 * 7 / 64) = 98 copies of 33 M parameters, with fp32 gradients.
    even = budget(released, base).memory["buffers"]
    assert even == rows + 98 * sizes.expert(released.text) * 6


def test_policies_order_what_lies_on_the_device(released):
    mesh = Mesh(expert=32, pipeline=4)
    held = {
        policy: budget(released, Setup(mesh=mesh, policy=policy))
        for policy in ("keep", "eight", "recompute", "offload")
    }
    device = [b.memory["activations"] for b in held.values()]
    assert device == sorted(device, reverse=True)
    assert held["offload"].host_bytes > held["keep"].memory["activations"] * 0.99
    assert [held[p].host_bytes for p in ("keep", "eight", "recompute")] == [0] * 3


def test_under_way_are_the_micro_batches_ahead():
    setup = Setup(mesh=Mesh(pipeline=4), micros=8)
    assert [in_flight(setup, s) for s in range(4)] == [4, 3, 2, 1]
    few = replace(setup, micros=2)
    assert [in_flight(few, s) for s in range(4)] == [2, 2, 2, 1]
    virtual = replace(setup, virtual=2)
    assert [in_flight(virtual, s) for s in range(4)] == [11, 9, 7, 5]


def test_the_suggestion_fits_and_keeps_what_is_fixed(released):
    setup = Setup(mesh=Mesh(context=2), micros=16)
    found = suggest(released, 1024, 120 * 2**30, setup, {"context"})
    assert found.setup.mesh.context == 2
    assert found.setup.mesh.ranks == 1024
    assert found.budget.total_bytes <= 120 * 2**30


def test_nothing_that_fits_is_said_with_the_least_there_is(released):
    with pytest.raises(
        RequestError, match=r"8 devices need at least [\d.]+ GiB, with pi"
    ):
        suggest(released, 8, 80 * 2**30, Setup(), set())


def test_settings_that_mean_nothing_are_all_named():
    with pytest.raises(ConfigError) as caught:
        Setup(tokens=0, zero=1, policy="drop", optimizer="sgd")
    for said in ("tokens must be", "zero must be one of 2, 3", "policy", "optimizer"):
        assert said in str(caught.value)
