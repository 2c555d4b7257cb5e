"""How a fresh model starts."""

import math

import pytest
import torch
from small import config, gap, ids

from k3.errors import RequestError
from k3.model import Model


@pytest.fixture(scope="module")
def fresh():
    return Model(config(vision={}), dtype=torch.float32).init_weights(seed=3)


def named(net, ending):
    return [p for name, p in net.named_parameters() if name.endswith(ending)]


def test_every_parameter_is_set(poisoned):
    """Allocated as NaN, none survives, for text, vision and MTP."""
    made = config(vision={"attention": "divided"}, num_nextn_predict_layers=1)
    net = Model(made, dtype=torch.float32)
    assert any(p.isnan().any() for p in net.parameters())
    net.init_weights()
    assert all(p.isfinite().all() for p in net.parameters())


def test_report_37_depth_queries_are_zero_and_mix_by_the_mean(fresh):
    assert all((p == 0).all() for p in named(fresh, "res_proj.weight"))
    taps = {}
    fresh(ids(1, 6), taps=taps)
    blocks = [taps["embed_tokens"]]
    blocks += [taps[f"layers.{i}.out_prefix"] for i in (2, 5, 6)]
    assert gap(taps["output_attn_res"], torch.stack(blocks).mean(0)) < 1e-5


def test_norms_are_one_and_the_router_bias_is_zero(fresh):
    assert all((p == 1).all() for p in named(fresh, "norm.weight"))
    assert all((p == 0).all() for p in named(fresh, "e_score_correction_bias"))


def test_decay_rates_and_steps_are_in_their_ranges(fresh):
    for A_log, dt_bias in zip(
        named(fresh, "A_log"), named(fresh, "dt_bias"), strict=True
    ):
        assert A_log.shape == (5,)
        assert ((A_log >= 0) & (A_log <= math.log(16))).all()
        step = torch.nn.functional.softplus(dt_bias.double())
        assert ((step > 0.99e-3) & (step < 1.01e-1)).all()


def test_the_padding_row_starts_at_zero_and_stays(fresh):
    table = fresh.language_model.model.embed_tokens.weight
    assert (table[60] == 0).all()
    assert (table[:60].abs().amax(1) > 0).all()
    tokens = torch.tensor([[3, 60, 4]])
    (grad,) = torch.autograd.grad(fresh(tokens).square().sum(), table)
    assert (grad[60] == 0).all()
    assert (grad[[3, 4]].abs().amax(1) > 0).all()


def test_matrices_have_the_deviation_of_the_config(fresh):
    (head,) = named(fresh, "lm_head.weight")
    assert head.std().item() == pytest.approx(0.02, rel=0.1)


def test_the_seed_decides(fresh):
    twin = Model(fresh.config, dtype=torch.float32).init_weights(seed=3)
    other = Model(fresh.config, dtype=torch.float32).init_weights(seed=4)
    for (name, p), q in zip(fresh.named_parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q), name
    (a,), (b,) = named(fresh, "lm_head.weight"), named(other, "lm_head.weight")
    assert not torch.equal(a, b)


def test_packed_experts_are_not_initialized():
    sizes = {"moe_intermediate_size": 32, "routed_expert_hidden_size": 32}
    net = Model(config(**sizes), experts="packed")
    with pytest.raises(RequestError, match=r"fresh experts are dense.*pack on save"):
        net.init_weights()
