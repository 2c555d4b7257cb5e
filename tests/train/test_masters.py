"""The model holds what its file will hold; fp32 masters collect the updates."""

import pytest
import torch

from k3.errors import RequestError
from k3.kernels import mx
from k3.train import pretrain
from k3.train.masters import Masters


@pytest.fixture
def model(small):
    return pretrain.fresh(small)


@pytest.fixture
def masters(model):
    return Masters(model, betas=(0.9, 0.95), weight_decay=0.1)


def gradients(masters, scale=1.0):
    torch.manual_seed(3)
    return [scale * torch.randn_like(p) for p in masters.parameters.values()]


def test_parameters_are_their_own_stored_values(model, masters):
    masters.step(gradients(masters), 1e-2, 1.0)
    for name, p in model.named_parameters():
        if ".experts.w" in name:
            assert torch.equal(p, mx.decode(*mx.encode(p), torch.float32))
        elif not name.endswith(("conv1d.weight", "A_log", "dt_bias", "o_norm.weight")):
            assert torch.equal(p, p.to(torch.bfloat16).float()), name


def test_fp32_parameters_are_not_rounded(model, masters):
    masters.step(gradients(masters), 1e-2, 1.0)
    p = model.language_model.model.layers[0].self_attn.dt_bias
    assert not torch.equal(p, p.to(torch.bfloat16).float())


def test_small_updates_add_up_below_the_step_of_four_bits(masters):
    name = next(n for n in masters.parameters if n.endswith("experts.w1"))
    before, held = (
        masters.weights[name].detach().clone(),
        masters.parameters[name].clone(),
    )
    masters.step(gradients(masters), 1e-6, 1.0)
    assert not torch.equal(masters.weights[name], before)
    assert (masters.parameters[name] == held).float().mean() > 0.99


def test_gradients_that_are_not_finite_change_nothing(masters):
    before = masters.state()
    before = {n: v.clone() for n, v in before.items()}
    bad = gradients(masters)
    bad[0][0] = torch.nan
    assert torch.tensor(masters.step(bad, 1e-2, 1.0)).isnan()
    for name, value in masters.state().items():
        assert torch.equal(value, before[name])


def test_norm_is_that_before_clipping(masters):
    found = gradients(masters)
    want = torch.stack([g.norm() for g in found]).norm().item()
    assert masters.step(found, 0.0, 1e-3) == pytest.approx(want, rel=1e-5)


def test_pad_row_stays_zero(small, model, masters):
    masters.step(gradients(masters), 1e-2, 1.0)
    row = model.language_model.model.embed_tokens.weight[small.config.pad_token_id]
    assert not row.any()


def test_norms_and_embedding_do_not_decay(masters):
    decay = {}
    for group in masters.optimizer.param_groups:
        for name, weight in masters.weights.items():
            if any(weight is p for p in group["params"]):
                decay[name.removeprefix("language_model.")] = group["weight_decay"]
    assert len(decay) == len(masters.weights)
    assert decay["model.embed_tokens.weight"] == decay["model.norm.weight"] == 0
    assert decay["model.layers.0.mlp_res_proj.weight"] == 0
    assert decay["model.layers.0.self_attn.dt_bias"] == 0
    assert decay["lm_head.weight"] == decay["model.layers.3.self_attn.o_proj.weight"]
    assert decay["lm_head.weight"] == 0.1


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_state_restores_weights_and_moments(small, model, optimizer):
    options = {"betas": (0.9, 0.95), "weight_decay": 0.1, "optimizer": optimizer}
    masters = Masters(model, **options)
    masters.step(gradients(masters), 1e-2, 1.0)
    state = {n: v.clone() for n, v in masters.state().items()}
    assert any(n.startswith("momentum.") for n in state) == (optimizer == "muon")
    other = Masters(pretrain.fresh(small), **options)
    other.restore(state)
    for each in (masters, other):
        each.step(gradients(each, 0.5), 1e-2, 1.0)
    for name, value in masters.state().items():
        assert torch.equal(value, other.state()[name]), name


def test_an_unknown_optimizer_is_refused(model):
    with pytest.raises(RequestError, match="one of muon, adamw: got 'sgd'"):
        Masters(model, betas=(0.9, 0.95), weight_decay=0.1, optimizer="sgd")


@pytest.mark.parametrize(("optimizer", "part"), [("muon", 0.25), ("adamw", 1.0)])
def test_adamw_beside_muon_has_a_rate_of_its_own(model, optimizer, part):
    def moved(rate):
        masters = Masters(
            model,
            betas=(0.9, 0.95),
            weight_decay=0.0,
            optimizer=optimizer,
            adamw_rate=rate,
        )
        name = "language_model.lm_head.weight"
        before = masters.weights[name].detach().clone()
        masters.step(gradients(masters), 1e-2, 1.0)
        return masters.weights[name].detach() - before

    assert torch.allclose(moved(0.25), part * moved(1.0), atol=1e-7)


def test_a_bf16_model_has_fp32_masters(small):
    narrow = pretrain.fresh(small).to(torch.bfloat16)
    masters = Masters(narrow, betas=(0.9, 0.95), weight_decay=0.1, optimizer="muon")
    assert {w.dtype for w in masters.weights.values()} == {torch.float32}
    found = [g.to(torch.bfloat16) for g in gradients(masters)]
    masters.step(found, 1e-5, 1.0)
    name = "language_model.model.layers.0.self_attn.q_proj.weight"
    held, master = masters.parameters[name], masters.weights[name]
    assert held.dtype == torch.bfloat16
    assert torch.equal(held, master.to(torch.bfloat16))
    assert not torch.equal(held.float(), master)
