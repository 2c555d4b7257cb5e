"""A fresh model predicts nothing and passes its embedding up to the head."""

import torch

from k3.train import pretrain


def test_every_sublayer_starts_silent_and_the_head_even(small):
    model = pretrain.fresh(small)
    taps = {}
    with torch.no_grad():
        logits = model(torch.arange(20)[None], taps=taps)
    assert not logits.any()
    assert not taps["layers.3.self_attn"].any()
    assert taps["embed_tokens"].std() > 0.4
    decay = model.language_model.model.layers[0].self_attn.A_log
    assert not decay.any()


def test_router_and_experts_differ_from_the_start(small):
    layer = pretrain.fresh(small).language_model.model.layers[1].block_sparse_moe
    assert layer.gate.weight.std() > 0.05
    assert not torch.equal(layer.experts.w1[0], layer.experts.w1[1])
