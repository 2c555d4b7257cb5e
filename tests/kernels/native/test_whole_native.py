"""The whole model with native kernels and without: the same numbers, the same text."""

from pathlib import Path

import pytest
import torch

import k3
from k3.kernels import choose
from k3.model.generate import GenerateOptions, stream
from k3.verify.compare import compare

GOLDEN = Path(__file__).parents[2] / "golden" / "tiny_release"


@pytest.mark.parametrize("name", ["torch", "native"])
def test_the_released_numbers_hold(name):
    with choose.use(name):
        model = k3.load(GOLDEN, dtype=torch.float32)
        assert compare(model, GOLDEN / "golden.npz").ok


def test_greedy_text_is_identical():
    model, tokenizer = k3.load("tiny", dtype=torch.float32), k3.tokenizer("tiny")
    ids = tokenizer.encode("The with statement")
    options = GenerateOptions(max_tokens=24, temperature=0.0)
    found = []
    for name in ("torch", "native"):
        with choose.use(name):
            found.append([token.id for token in stream(model, ids, options)])
    assert found[0] == found[1]
    assert len(found[0]) == 24
