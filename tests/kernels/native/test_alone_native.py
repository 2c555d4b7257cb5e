"""What is held by one holder is told from what somebody else would see change."""

import gc

import pytest
import torch
from torch.utils import dlpack

from k3.kernels.native import alone, library

pytestmark = pytest.mark.skipif(
    library.load() is None or alone.counts() is None,
    reason="needs the native kernels, and a CPython whose counts are found",
)


@pytest.fixture(params=[torch.no_grad, torch.inference_mode])
def mode(request):
    with request.param():
        yield


def scene():
    """Two tensors over one memory and one over its own, beside their counts."""
    tensors = [*torch.ones(2, 3).unbind(), torch.ones(5)]
    return tensors, alone.Alone(tensors)


HOLDERS = {
    "the object": lambda x: [x],
    "a view": lambda x: x[1:],
    "what is behind it": lambda x: x.detach(),
    "its storage": lambda x: x.untyped_storage(),
    "numpy": lambda x: x.numpy(),
    "dlpack": dlpack.to_dlpack,
}


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("kind", HOLDERS)
def test_whoever_holds_a_tensor_is_seen(mode, kind, at):
    tensors, found = scene()
    assert found.stand()
    tensors[0].mul_(2)
    assert found.stand()
    held = HOLDERS[kind](tensors[at])
    assert not found.stand()
    del held
    gc.collect()
    # A storage that was asked for by name is Python's from then on.
    assert found.stand() == (kind != "its storage")


def test_where_no_count_is_found_nothing_is_alone(monkeypatch):
    monkeypatch.setattr(alone, "counts", lambda: None)
    assert not alone.Alone([torch.ones(3)]).stand()
