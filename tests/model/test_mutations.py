"""Report 34: parts that a port may lose each change the golden model's logits."""

import pytest
import torch
from small import TINY, gap, ids

import k3
from k3.kernels import choose, kda
from k3.model.mlp import MLP


@pytest.fixture
def net():
    return k3.load(TINY, dtype=torch.float32, experts="dequantized")


def sparse(net):
    return [b for n, b in net.named_modules() if n.endswith("block_sparse_moe")]


def no_latent_norm(net):
    for block in sparse(net):
        block.routed_expert_norm = torch.nn.Identity()


class Open(torch.nn.Module):
    """An output gate that lets everything through."""

    def __init__(self, gate):
        super().__init__()
        self.width = gate.weight.shape[0]

    def forward(self, x):
        return x.new_full((*x.shape[:-1], self.width), 1e4)


def no_mla_gate(net):
    for layer in net.language_model.model.layers:
        if not hasattr(layer.self_attn, "A_log"):
            layer.self_attn.g_proj = Open(layer.self_attn.g_proj)


def no_kda_gate(net):
    for layer in net.language_model.model.layers:
        if hasattr(layer.self_attn, "A_log"):
            layer.self_attn.g_proj = Open(layer.self_attn.g_proj)


def no_up_cap(net):
    for module in net.modules():
        if hasattr(module, "linear_beta"):
            module.linear_beta = 1e6


def no_gate_cap(net):
    for module in net.modules():
        if hasattr(module, "linear_beta"):
            module.beta = 1e6


def no_final_retrieval(net):
    decoder = net.language_model.model
    decoder.output_attn_res_proj.weight.detach().zero_()


def no_shared_experts(net):
    for block in sparse(net):
        for p in block.shared_experts.down_proj.parameters():
            p.detach().zero_()


def no_selection_bias(net):
    for block in sparse(net):
        block.gate.e_score_correction_bias.zero_()


def no_decay(net):
    for name, p in net.named_parameters():
        if name.endswith("dt_bias"):
            p.detach().fill_(-1e4)


def no_shared_key(net):
    for layer in net.language_model.model.layers:
        if hasattr(layer.self_attn, "kv_b_proj"):
            weight = layer.self_attn.kv_a_proj_with_mqa.weight.detach()
            weight[layer.self_attn.latent :] = 0


LOST = [
    no_latent_norm,
    no_mla_gate,
    no_kda_gate,
    no_up_cap,
    no_gate_cap,
    no_final_retrieval,
    no_shared_experts,
    no_selection_bias,
    no_decay,
    no_shared_key,
]


@pytest.mark.parametrize("lose", LOST, ids=lambda f: f.__name__)
def test_report_34_a_lost_part_shows(net, lose):
    tokens = ids(1, 30, words=240)
    with torch.no_grad():
        before = net(tokens)
        lose(net)
        after = net(tokens)
    assert (after - before).abs().max() > 1e-3
    assert gap(after, before) > 1e-3


def test_report_11_the_gate_is_chosen_by_the_config(net, monkeypatch):
    """K3 gives its floor to the kernel; without one, the open form is another model."""
    bounds, gate = [], kda.gate

    def record(z, A_log, dt_bias, lower_bound):
        bounds.append(lower_bound)
        return gate(z, A_log, dt_bias, lower_bound)

    monkeypatch.setattr(kda, "gate", record)
    tokens = ids(1, 20, words=240)
    with torch.no_grad():
        with choose.use("torch"):
            net(tokens)
        assert bounds == [-5.0] * 5
        before = net(tokens)
        for layer in net.language_model.model.layers:
            layer.self_attn.lower_bound = None
        assert gap(net(tokens), before) > 1e-3


def test_shared_experts_are_one_fused_mlp(net):
    for block in sparse(net):
        assert isinstance(block.shared_experts, MLP)
        assert block.shared_experts.gate_proj.weight.shape == (192, 40)
