"""The multi-token-prediction layer, by its formula."""

import pytest
import torch
from small import config, gap, ids, model

from k3.model.mtp import MTP


@pytest.fixture(scope="module")
def net():
    return model(torch.float64, config(num_nextn_predict_layers=1))


def hidden_of(net, tokens):
    taps = {}
    net(tokens, taps=taps)
    return taps["output_attn_res"]


def test_the_layer_lies_behind_the_others(net):
    layers = net.language_model.model.layers
    assert isinstance(layers[7], MTP)
    assert len(layers) == 8


def test_the_trunk_does_not_run_it(net):
    plain = model(torch.float64)
    state = {n: x for n, x in net.state_dict().items() if ".layers.7." not in n}
    plain.load_state_dict(state)
    assert torch.equal(plain(ids(1, 5)), net(ids(1, 5)))
    assert len(net.init_state(1).caches) == 7
    _, after = net(ids(1, 5), state=net.init_state(1))
    assert after.lens == (5,)


def test_formula(net, poisoned):
    tokens, layer = ids(2, 6), net.language_model.model.layers[7]
    hidden = hidden_of(net, tokens)
    e = layer.embed_tokens.weight[tokens].clone()
    e[:, 0] = 0
    x = torch.cat([layer.enorm(e), layer.hnorm(hidden)], -1) @ layer.eh_proj.weight.T
    x = x + layer.self_attn(layer.input_layernorm(x))
    x = x + layer.block_sparse_moe(layer.post_attention_layernorm(x))
    head = layer.shared_head
    want = head.norm(x) @ head.head.weight.T
    got = layer(tokens, hidden)
    assert got.shape == (2, 6, 61)
    assert gap(got, want) < 1e-12


def test_the_first_embedding_does_not_matter(net):
    tokens, layer = ids(1, 6), net.language_model.model.layers[7]
    hidden = torch.randn(1, 6, 26, dtype=torch.float64)
    other = tokens.clone()
    other[0, 0] = (other[0, 0] + 1) % 57
    assert torch.equal(layer(tokens, hidden), layer(other, hidden))
    other[0, 1] = (other[0, 1] + 1) % 57
    assert not torch.equal(layer(tokens, hidden), layer(other, hidden))


def test_gradients_reach_every_weight(net):
    tokens, layer = ids(2, 9), net.language_model.model.layers[7]
    layer(tokens, hidden_of(net, tokens)).square().sum().backward()
    for name, p in layer.named_parameters():
        if p.requires_grad and ".experts." not in name:
            assert p.grad.abs().max() > 0, name
    net.zero_grad()
