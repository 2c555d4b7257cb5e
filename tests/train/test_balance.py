"""The selection bias moves against the load and stays centred."""

import pytest
import torch

from k3.train import balance, pretrain


def test_bias_falls_where_the_load_is_high_and_stays_centred(small):
    model = pretrain.fresh(small)
    loads = torch.ones(4, 8)
    loads[1, 0] = 9.0
    balance.update_(model, loads, 0.1)
    found = balance.biases(model)
    assert not found[0].any()
    assert found[1][0] == pytest.approx(-0.175)
    assert found[1][1:].tolist() == pytest.approx([0.025] * 7)


def test_repeated_updates_even_out_a_skewed_router(small):
    model = pretrain.fresh(small)
    bias = balance.biases(model)[0]
    torch.manual_seed(0)
    scores = torch.rand(500, 8) * 0.3 + torch.linspace(0, 0.6, 8)

    def loads():
        index = (scores + bias).topk(2, -1).indices
        return torch.bincount(index.flatten(), minlength=8).float()

    first = balance.imbalance(loads()[None])
    for _ in range(100):
        balance.update_(model, loads().repeat(4, 1), 0.01)
    assert first > 3
    assert balance.imbalance(loads()[None]) < 1.3


def test_imbalance_is_that_of_the_worst_layer():
    loads = torch.tensor([[1.0, 1, 1, 1], [4, 0, 0, 0]])
    assert balance.imbalance(loads) == 4
