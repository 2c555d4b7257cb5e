"""Which parameters stay wide under every cast, and that casts can be repeated."""

import copy

import pytest
import torch
from small import gap, ids, model

from k3.checkpoint import load, save
from k3.model import Model

WIDE = (
    "A_log",
    "dt_bias",
    "q_conv1d.weight",
    "k_conv1d.weight",
    "v_conv1d.weight",
    "o_norm.weight",
    "e_score_correction_bias",
)


def dtypes(net):
    wide, narrow = set(), set()
    for name, p in net.named_parameters():
        (wide if name.endswith(WIDE) else narrow).add(p.dtype)
    return wide, narrow


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("start", [torch.float32, torch.float64])
def test_a_cast_narrows_all_but_the_wide_ones(dtype, start):
    net = model(start)
    want = {n: p.detach().float() for n, p in net.named_parameters()}
    net.to(dtype)
    assert dtypes(net) == ({torch.float32}, {dtype})
    assert net.dtype == dtype
    for name, p in net.named_parameters():
        if name.endswith(WIDE):
            assert torch.equal(p, want[name])
    assert net(ids(2, 5)).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_made_in_a_dtype(dtype):
    net = Model(model().config, dtype=dtype)
    assert dtypes(net) == ({torch.float32}, {dtype})


def test_made_and_cast_to_fp64_everything_is():
    assert dtypes(model(torch.float64)) == ({torch.float64},) * 2
    assert dtypes(model().double()) == ({torch.float64},) * 2


def test_there_and_back_is_harmless():
    net = model()
    net.half().double().bfloat16().float()
    assert dtypes(net) == ({torch.float32},) * 2
    net.bfloat16()
    assert net(ids(1, 4)).dtype == torch.float32


def test_a_cast_between_backward_passes():
    net = model()
    net(ids(1, 4)).sum().backward()
    net.bfloat16()
    for p in net.parameters():
        assert p.grad is None or p.grad.dtype == p.dtype
    net(ids(1, 4)).sum().backward()


def test_a_copy_keeps_its_dtypes():
    net = model().bfloat16()
    twin = copy.deepcopy(net)
    assert dtypes(twin) == dtypes(net)
    assert torch.equal(twin(ids(1, 4)), net(ids(1, 4)))


def test_report_05_the_bias_is_fp32_after_load_cast_and_save(tmp_path):
    name = "language_model.model.layers.1.block_sparse_moe.gate.e_score_correction_bias"
    net = model(torch.bfloat16)
    bias = net.state_dict()[name]
    bias[:2] = torch.tensor([7.0, 7.01])
    save.save(net, tmp_path / "saved")
    again = load.load(tmp_path / "saved").to(torch.bfloat16)
    assert again.state_dict()[name].dtype == torch.float32
    assert torch.equal(again.state_dict()[name], bias)
    assert gap(again(ids(1, 4)), net(ids(1, 4))) == 0
