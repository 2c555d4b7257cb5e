"""Who goes to the Triton kernels: fakes in their place, tensors that say CUDA."""

import sys
from types import SimpleNamespace

import pytest
import small
import torch

from k3.kernels import attn_res, choose, situ
from k3.kernels import triton as package


@pytest.fixture
def calls(monkeypatch):
    """What the fake kernels were given; everything counts as plain CUDA tensors."""
    seen = []

    def fake(name, function):
        def run(*given):
            seen.append((name, given))
            return "done"

        module = SimpleNamespace(**{function: run})
        monkeypatch.setitem(sys.modules, f"k3.kernels.triton.{name}", module)
        monkeypatch.setattr(package, name, module, raising=False)

    for name, function in (("situ", "situ"), ("attn_res", "mix")):
        fake(name, function)
    fake("experts", "combine")
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda x: True))
    monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda x: False))
    monkeypatch.setattr(choose, "installed", lambda module: True)
    return seen


def unchecked(function):
    """A function without the check of its result: the fakes return a word."""
    return getattr(function, "__wrapped__", function)


def test_situ_and_mixing(calls):
    x = torch.ones(2, 3)
    assert unchecked(situ.situ)(x, x, 4.0, 25.0) == "done"
    blocks, scale, query = torch.ones(2, 1, 3), torch.ones(2, 1), torch.ones(3)
    mix = unchecked(attn_res.mix)
    assert mix(blocks, scale, x, query, 1e-5) == "done"
    assert [name for name, _ in calls] == ["situ", "attn_res"]
    mix(blocks.double(), scale.double(), x.double(), query.double(), 1e-5)
    unchecked(situ.situ)(x, x.bfloat16(), 4.0, 25.0)
    mix(torch.ones(2, 1, 16385), scale, None, torch.ones(16385), 1e-5)
    assert len(calls) == 2


@pytest.mark.parametrize("kind", ["packed", "dequantized"])
def test_experts_without_gradients(calls, kind):
    from k3.model.experts import Experts

    sizes = {"routed_expert_hidden_size": 32, "moe_intermediate_size": 64}
    config = small.config(**sizes).text_config
    experts = Experts(config, torch.float32, kind)
    z, index, weights = torch.ones(3, 32), torch.zeros(3, 2).long(), torch.ones(3, 2)
    with torch.no_grad():
        assert unchecked(Experts.grouped)(experts, z, index, weights) == "done"
        narrow = unchecked(Experts.grouped)(experts, z.bfloat16(), index, weights)
    assert narrow is None
    recorded = unchecked(Experts.grouped)(experts, z.requires_grad_(), index, weights)
    assert recorded is None
    (_, given), *more = calls
    assert not more
    names = {"w1", "w2", "w3"} | ({"s1", "s2", "s3"} if kind == "packed" else set())
    assert given[3].keys() == names
