"""What one token reads is counted from the weights as they are held."""

import pytest
import small
import torch

from k3.bench import floors
from k3.config import sizes


def test_dense_weights_are_the_active_parameters():
    model = small.model()
    active = sizes.parameters(model.config).active
    assert floors.weight_bytes(model) == pytest.approx(4 * active, rel=0.02)
    assert floors.operations(model) == 2 * active


def test_a_narrower_dtype_reads_fewer_bytes():
    wide, narrow = small.model(), small.model(torch.bfloat16)
    assert floors.weight_bytes(narrow) < 0.6 * floors.weight_bytes(wide)
    assert floors.held_bytes(wide) > floors.weight_bytes(wide)


def test_limits_only_rise():
    found = floors.Floors(small.model())
    found.measure()
    first = found.bytes_per_s, found.flops_per_s
    found.measure()
    assert found.bytes_per_s >= first[0] > 0
    assert found.flops_per_s >= first[1] > 0
    assert found.step(1000) == found.prompt(1000) > found.step(1) > 0
