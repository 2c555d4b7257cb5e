"""Values that no model can run with are refused by name; states know their files."""

import os
import shutil

import pytest
import torch

from k3.checkpoint.load import load
from k3.errors import CheckpointError, RequestError
from k3.model import DecodeState

IDS = torch.tensor([[1, 2, 3]])


def damage(end, value, at=0):
    def change(tensors):
        for name in tensors:
            if name.endswith(end):
                tensors[name].view(-1)[at] = value
                return

    return change


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(
    "end",
    ["A_log", "dt_bias", "e_score_correction_bias", "conv1d.weight", "o_norm.weight"],
)
def test_fp32_that_is_not_finite_is_refused(copied, edit, end, value):
    for number in (1, 2, 3):
        edit(copied, number, damage(end, value))
    with pytest.raises(CheckpointError, match=rf"{end} must be finite: got .* at 0"):
        load(copied)


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("end", ["q_proj.weight", "embed_tokens.weight", "norm.weight"])
def test_a_trunk_that_is_not_finite_is_refused(copied, edit, end, value, dtype):
    for number in (1, 2, 3):
        edit(copied, number, damage(end, value, at=-1))
    with pytest.raises(CheckpointError, match=rf"{end} must be finite: got "):
        load(copied, dtype=dtype)


@pytest.mark.parametrize("value", [-0.0, 1.0, torch.nan])
def test_the_tail_of_a_log_is_zero_to_the_bit(copied, edit, value):
    for number in (1, 2, 3):
        edit(copied, number, damage("A_log", value, at=-1))
    with pytest.raises(
        CheckpointError, match=r"heads and then zeros: got (-0.0|1.0|n)"
    ):
        load(copied)


def test_the_same_files_restore_a_state_and_others_do_not(copied, edit, tmp_path):
    first, again = (load(copied, dtype=torch.float32) for _ in range(2))
    with torch.no_grad():
        _, state = first(IDS, state=first.init_state(1))
        packed = state.pack()
        again.step(IDS[:, :1], DecodeState.unpack(packed))
        moved = shutil.copytree(copied, tmp_path / "moved")
        load(moved, dtype=torch.float32).step(IDS[:, :1], DecodeState.unpack(packed))
        times = {p: p.stat().st_mtime_ns for p in copied.iterdir()}
        edit(copied, 1, lambda t: t[min(t, key=lambda n: t[n].numel())].mul_(2.0))
        for path, time in times.items():
            os.utime(path, ns=(time, time))
        other = load(copied, dtype=torch.float32)
        with pytest.raises(RequestError, match="belongs to the weights that made it"):
            other.step(IDS[:, :1], DecodeState.unpack(packed))


def test_a_model_loaded_in_inference_mode_trains(tiny):
    with torch.inference_mode():
        model = load(tiny, dtype=torch.float32, experts="dequantized")
    model(IDS).sum().backward()
    assert model.language_model.lm_head.weight.grad is not None
