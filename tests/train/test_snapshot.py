"""A snapshot is whole or the one before."""

import pytest
import torch

from k3.errors import CheckpointError
from k3.train import snapshot


def test_round_trip(tmp_path):
    tensors = {"a": torch.randn(3, 2).T, "step": torch.tensor(4.0)}
    facts = {"step": 4, "recipe": {"steps": 9}}
    snapshot.write(tmp_path, tensors, facts)
    found, told = snapshot.read(tmp_path)
    assert told == facts
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[n], tensors[n]) for n in tensors)


def test_a_write_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    snapshot.write(tmp_path, {"a": torch.ones(2)}, {"step": 1})

    def cut(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(snapshot, "save_file", cut)
    with pytest.raises(OSError, match="disk full"):
        snapshot.write(tmp_path, {"a": torch.zeros(2)}, {"step": 2})
    tensors, facts = snapshot.read(tmp_path)
    assert facts == {"step": 1}
    assert tensors["a"].all()


def test_nothing_to_resume(tmp_path):
    with pytest.raises(CheckpointError, match="no such file; start without resume"):
        snapshot.read(tmp_path)
