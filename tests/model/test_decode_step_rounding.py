"""What the native decode step and PyTorch's differ by in bfloat16 is rounding."""

import pytest
import torch
from small import gap, ids

import k3
from k3.kernels import choose
from k3.kernels.native import library

pytestmark = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)


def step(model, form):
    """Logits of the last of nine tokens, the others run before it."""
    tokens = ids(2, 9)
    with torch.inference_mode(), choose.use(form):
        _, state = model(tokens[:, :8], state=model.init_state(2))
        logits, _ = model.step(tokens[:, 8:], state)
    return logits[:, -1]


def test_in_bfloat16_it_is_as_near_to_float64_as_pytorchs():
    narrow = k3.load("tiny", dtype=torch.bfloat16, experts="dequantized")
    wide = k3.load("tiny", dtype=torch.float64, experts="dequantized")
    true = step(wide, "torch")
    assert (
        0 < gap(step(narrow, "native"), true) < 1.5 * gap(step(narrow, "torch"), true)
    )
