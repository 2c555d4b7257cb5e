"""The vision tower is the spec's, for pictures and clips, joint and divided."""

import pytest
import small
import torch
from readings import models

from k3.verify.exact.pairs import vision

SIZES = {
    "patch_size": 2,
    "vt_hidden_size": 8,
    "vt_intermediate_size": 5,
    "vt_num_attention_heads": 2,
    "qkv_hidden_size": 8,
    "mm_hidden_size": 8,
    "vt_num_hidden_layers": 1,
}


@pytest.mark.parametrize("attention", ["joint", "divided"])
def test_features(attention):
    made = small.config(vision=SIZES | {"attention": attention})
    model = models.random(made).to(torch.float32)
    pair = vision.features(model, [(2, 2, 4), (1, 4, 2)])
    report = pair.check(seeds=2, covering=False)
    assert report, report
    assert report.bound <= 1e-6
