"""Adapters: nothing at first, then the only thing that moves, then merged."""

import pytest
import torch
import toy

from k3.errors import RequestError
from k3.model import Model
from k3.train import lora
from k3.train.lora import Adapted, Options

IDS = torch.tensor([[5, 9, 2, 77, 31, 8, 8, 140, 3, 60]])
ATTENTION = ("q_proj", "kv_b_proj", "o_proj")


@pytest.fixture
def model():
    return Model(toy.config(), dtype=torch.float32).init_weights(3)


def filled(model, targets=lora.ALL, rank=3):
    """A model whose adapters do something."""
    paths = lora.attach(model, Options(targets=targets, rank=rank, alpha=6.0))
    draw = torch.Generator().manual_seed(1)
    for layer in lora.adapted(model).values():
        shape = layer.lora_B.shape
        layer.lora_B.data.copy_(torch.randn(shape, generator=draw) * 0.05)
    return paths


@torch.no_grad()
def test_at_first_the_model_computes_what_it_did(model):
    before, version = model(IDS), model.weight_version
    paths = lora.attach(model, Options())
    assert len(paths) > 40
    assert not any(path.endswith("lm_head") for path in paths)
    assert torch.equal(model(IDS), before)
    assert model.weight_version != version
    assert all(m.lora_A.any() for m in lora.adapted(model).values())


@torch.no_grad()
@pytest.mark.parametrize("targets", [lora.ALL, ATTENTION])
def test_merged_is_unmerged(model, targets):
    plain = model(IDS)
    filled(model, targets)
    adapted = model(IDS)
    assert (adapted - plain).abs().max() > 1e-3
    lora.merge_(model)
    assert not lora.adapted(model)
    torch.testing.assert_close(model(IDS), adapted, rtol=1e-5, atol=2e-5)
    fresh = Model(toy.config(), dtype=torch.float32).init_weights(3)
    assert list(model.state_dict()) == list(fresh.state_dict())
    flags = {n: p.requires_grad for n, p in fresh.named_parameters()}
    assert {n: p.requires_grad for n, p in model.named_parameters()} == flags


@torch.no_grad()
def test_every_path_through_the_model_sees_the_adapter(model):
    """Steps, whose MLA reads kv_b_proj.weight and whose native form reads all."""
    filled(model)
    state = model.init_state(1)
    _, state = model(IDS[:, :4], state=state)
    whole = model(IDS)
    for t in range(4, IDS.shape[1]):
        logits, state = model.step(IDS[:, t : t + 1], state)
        torch.testing.assert_close(logits[:, 0], whole[:, t], rtol=1e-4, atol=1e-4)


def test_only_adapters_have_gradients(model):
    filled(model)
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    assert trained == {
        f"{path}.{leaf}"
        for path in lora.adapted(model)
        for leaf in ("lora_A", "lora_B")
    }
    model(IDS).square().mean().backward()
    for name, p in model.named_parameters():
        assert (p.grad is not None and bool(p.grad.any())) == (name in trained), name


def test_gradients_are_those_of_the_product():
    base = torch.nn.Linear(5, 4, bias=False, dtype=torch.float64)
    layer = Adapted(base, 2, 0.7).double()
    for p in (layer.lora_A, layer.lora_B):
        torch.nn.init.normal_(p)
    x = torch.randn(3, 5, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda a, b: x @ (base.weight + 0.7 * b @ a).T, (layer.lora_A, layer.lora_B)
    )
    one = torch.autograd.grad(layer(x).sin().sum(), (layer.lora_A, layer.lora_B))
    other = torch.autograd.grad(
        (x @ layer.weight.T).sin().sum(), (layer.lora_A, layer.lora_B)
    )
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)


def test_factors_stay_in_fp32_when_the_trunk_is_bfloat16(model):
    filled(model)
    model.to(torch.bfloat16)
    layer = next(iter(lora.adapted(model).values()))
    assert layer.lora_A.dtype == torch.float32
    assert layer.weight.dtype == layer.base.weight.dtype == torch.bfloat16
    x = torch.randn(2, layer.base.in_features).bfloat16()
    assert layer(x).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("targets", "count"),
    [
        (("q_b_proj",), 2),
        (r".*layers\.0\.self_attn\.[qkv]_proj", 3),
        (("layers.0.mlp.up_proj",), 1),
        (("routed_expert_down_proj",), 4),
    ],
)
def test_layers_are_named_by_their_ends_or_by_a_pattern(model, targets, count):
    assert len(lora.attach(model, Options(targets=targets))) == count
    assert len(lora.adapted(model)) == count


def test_no_layer_is_no_adapter(model):
    with pytest.raises(
        RequestError, match=r"matches no linear layer; they end in .*q_b"
    ):
        lora.attach(model, Options(targets=("query",)))
    assert not lora.adapted(model)


@pytest.mark.parametrize("kind", ["dequantized", "packed"])
@pytest.mark.parametrize("targets", [("w1",), ("experts",), ".*"])
def test_routed_experts_are_refused(kind, targets):
    model = Model(toy.config(), dtype=torch.float32, experts=kind)
    told = "packed in MXFP4" if kind == "packed" else "stacked in one tensor"
    with pytest.raises(RequestError, match=f"holds routed experts, {told}; name"):
        lora.attach(model, Options(targets=targets))
    assert not lora.adapted(model)


def test_packed_experts_may_stand_beside_adapters():
    model = Model(toy.config(), dtype=torch.float32, experts="packed")
    assert lora.attach(model, Options())


def test_a_second_adapter_is_refused(model):
    lora.attach(model, Options())
    with pytest.raises(RequestError, match="merge the first"):
        lora.attach(model, Options())


@pytest.mark.parametrize(
    "wrong", [{"rank": 0}, {"alpha": 0.0}, {"alpha": float("inf")}]
)
def test_options_that_mean_nothing_are_refused(wrong):
    with pytest.raises(RequestError, match="a rank of at least 1 and an alpha above 0"):
        Options(**wrong)
