"""The modules of the vision tower lie in their balls, and so do their equations."""

import pytest
import small
import torch

from k3.kernels import rotary
from k3.verify import enclose

SIZES = {
    "patch_size": 2,
    "vt_hidden_size": 8,
    "vt_intermediate_size": 5,
    "vt_num_attention_heads": 2,
    "qkv_hidden_size": 8,
    "mm_hidden_size": 8,
    "vt_num_hidden_layers": 1,
}
GRIDS = [(2, 2, 4), (1, 4, 2)]


def calls(attention, dtype):
    made = small.config(vision=SIZES | {"attention": attention})
    model = small.model(dtype, made)
    tower = model.vision_tower
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn(24, 3, 2, 2, generator=generator)
    merged = torch.randn(6, 32, generator=generator).to(dtype)
    with torch.no_grad():
        x = tower.patch_embed(pixels, GRIDS)
    turns = [rotary.angles(g, tower.encoder.head_dim, x.device) for g in GRIDS]
    yield tower.patch_embed, pixels, GRIDS
    yield tower.encoder.blocks[0], x, GRIDS, turns
    yield tower.encoder.final_layernorm, x
    yield model.mm_projector, merged


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("attention", ["joint", "divided"])
def test_modules_lie_in_their_balls(attention, dtype):
    for program, *args in calls(attention, dtype):
        report = enclose.module(program, *args)
        assert report, report
        assert report.equation
        assert not report.machine[0].vacuous


def test_another_gelu_is_told_apart():
    projector, x = list(calls("joint", torch.float32))[-1]
    right = enclose.module(projector, x)
    projector.proj[1].approximate = "tanh"
    wrong = enclose.module(projector, x)
    assert "equation out: OUTSIDE" in wrong.worst
    assert projector(x).detach() not in right.ball
