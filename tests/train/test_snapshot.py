"""A snapshot is whole or the one before."""

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

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

    def cut(path, data):
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", cut)
    with pytest.raises(OSError, match="disk full"):
        snapshot.write(tmp_path, {"a": torch.zeros(2)}, {"step": 2})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {snapshot.WRITING, snapshot.path_of(tmp_path, 1).name}
    tensors, facts = snapshot.read(tmp_path)
    assert facts == {"step": 1}
    assert tensors["a"].all()


def test_nothing_to_resume(tmp_path):
    with pytest.raises(CheckpointError, match="no such file; start without resume"):
        snapshot.read(tmp_path)


@pytest.mark.parametrize("length", [0, 5, 8, 60, -1])
def test_a_cut_snapshot_is_refused(tmp_path, length):
    snapshot.write(tmp_path, {"a": torch.ones(20)}, {"step": 1})
    path = snapshot.path_of(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match=r"a whole snapshot: got .*restore the"):
        snapshot.read(tmp_path)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"other": "x"},
        {"facts": "{"},
        {"facts": "[1]", "crc32": "{}"},
        {"facts": "[" * 10**5},
        {"facts": "{}"},
        {"facts": "{}", "crc32": '{"a": 7}'},
    ],
    ids=["none", "other", "cut", "list", "deep", "no sums", "other sums"],
)
def test_a_snapshot_without_its_facts_is_refused(tmp_path, metadata):
    save_file({"a": torch.ones(2)}, snapshot.path_of(tmp_path, 3), metadata=metadata)
    with pytest.raises(CheckpointError, match="needs a whole snapshot: got "):
        snapshot.read(tmp_path)


def test_the_bytes_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("disk"), fsync(fd)))
    monkeypatch.setattr(
        os, "replace", lambda old, new: (order.append("name"), replace(old, new))
    )
    snapshot.write(tmp_path, {}, {"step": 0})
    assert order == ["disk", "name", "disk"]
    assert snapshot.read(tmp_path) == ({}, {"step": 0})


def test_so_many_are_kept_and_the_newest_is_read(tmp_path):
    for step in (0, 3, 12, 7_000_000_000):
        snapshot.write(tmp_path, {"a": torch.tensor([step])}, {"step": step}, keep=2)
    names = [path.name for path in snapshot.kept(tmp_path)]
    assert names == ["training-7000000000.safetensors", "training-00000012.safetensors"]
    assert snapshot.read(tmp_path)[1] == {"step": 7_000_000_000}


def test_the_newest_whole_one_is_read_and_is_kept(tmp_path):
    """What a damaged file of later steps says is overwritten when they come again."""
    for step in (2, 4, 6):
        snapshot.write(tmp_path, {"a": torch.ones(9)}, {"step": step}, keep=3)
    for step in (4, 6):
        path = snapshot.path_of(tmp_path, step)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    assert snapshot.read(tmp_path)[1] == {"step": 2}
    snapshot.write(tmp_path, {}, {"step": 3}, keep=1)
    assert snapshot.read(tmp_path)[1] == {"step": 3}
    assert not snapshot.path_of(tmp_path, 2).exists()


def test_other_files_are_no_snapshots(tmp_path):
    for name in ("training-1.safetensors", "training-00000001x.safetensors"):
        (tmp_path / name).touch()
    assert snapshot.kept(tmp_path) == []
