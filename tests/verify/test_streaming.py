"""k3.verify.streaming: the model passes, and a broken state does not."""

from pathlib import Path

import pytest
import torch

import k3
from k3.verify.streaming import relative, streaming

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_release"
IDS = [(7 * i) % 240 for i in range(63)]


@pytest.fixture(scope="module")
def model():
    return k3.load(GOLDEN, dtype=torch.float64, experts="dequantized")


@pytest.mark.parametrize("piece", [1, 16, 17, 100])
def test_pieces_of_any_size_give_what_the_whole_gives(model, piece):
    found = streaming(model, IDS, piece)
    assert found.logits < 1e-11
    assert found.state < 1e-11


def test_a_state_that_forgets_is_found_out(model, monkeypatch):
    whole = type(model).forward

    def forgetful(self, ids, *, state=None, **options):
        fresh = self.init_state(1) if ids.shape[1] == 7 else state
        return whole(self, ids, state=fresh, **options)

    monkeypatch.setattr(type(model), "forward", forgetful)
    assert streaming(model, IDS, 7).logits > 1e-3


def test_nan_is_an_infinite_difference():
    nan = torch.tensor([1.0, float("nan")])
    assert relative(nan, torch.ones(2)) == float("inf")
    assert relative(torch.zeros(2), torch.zeros(2)) == 0.0
    assert relative(torch.zeros(2), torch.zeros(3)) == float("inf")
