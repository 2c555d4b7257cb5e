"""Saving: the released layout back, byte for byte, and never half of it."""

import errno
import json
from pathlib import Path

import pytest
import torch

from k3.checkpoint import header, shards
from k3.checkpoint.load import load
from k3.checkpoint.save import copy_side_files, save
from k3.config import K3Config
from k3.errors import CheckpointError, RequestError
from k3.kernels import mx

INDEX = "model.safetensors.index.json"


class Killed(BaseException):
    """What a kill is here: nothing cleans up after it."""


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]) for name in a
    )


@pytest.mark.parametrize("mode", ["packed", "mmap"])
def test_round_trip_is_byte_identical(mode, tiny, tmp_path, tensors_of):
    save(load(tiny, experts=mode), tmp_path / "a", max_shard_bytes=300_000)
    assert same(tensors_of(tmp_path / "a"), tensors_of(tiny))
    values = json.loads((tiny / "config.json").read_text())
    assert json.loads((tmp_path / "a" / "config.json").read_text()) == values
    save(load(tmp_path / "a"), tmp_path / "b", max_shard_bytes=300_000)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_the_released_cut_gives_the_released_files(tiny, tmp_path, tensors_of):
    parts = []
    for name in header.index(tiny):
        entries = header.read(tiny / name)
        table = {n: (entries[n].shape, entries[n].dtype) for n in entries}
        (shard,) = shards.split(table, 10**9)
        parts.append(shards.Shard(name, shard.tensors))
    stored = tensors_of(tiny)
    shards.write(tmp_path, parts, stored.__getitem__, K3Config.load(tiny))
    for name in [*header.index(tiny), INDEX]:
        assert (tmp_path / name).read_bytes() == (tiny / name).read_bytes()


@pytest.mark.parametrize("limit", [5_000, 20_000, 500_000])
def test_shard_size_limit(limit, tiny, tmp_path):
    save(load(tiny), tmp_path, max_shard_bytes=limit)
    for name, tensors in header.index(tmp_path).items():
        entries = header.read(tmp_path / name)
        total = sum(entry.nbytes for entry in entries.values())
        assert total <= limit or len(tensors) == 1
    index = json.loads((tmp_path / INDEX).read_text())
    assert index["metadata"]["total_size"] == 1_427_360
    assert same(load(tmp_path).state_dict(), load(tiny).state_dict())


def test_dense_model_saved_dense_and_packed(small, tmp_path, tensors_of):
    model = small()
    save(model, tmp_path / "dense")
    assert K3Config.load(tmp_path / "dense").text.quantization_config is None
    assert same(load(tmp_path / "dense").state_dict(), model.state_dict())
    save(model, tmp_path / "packed", experts="packed")
    config = K3Config.load(tmp_path / "packed")
    assert config.text.quantization_config == model.config.text.quantization_config
    stored = tensors_of(tmp_path / "packed")
    experts = model.language_model.model.layers[2].block_sparse_moe.experts
    at = "language_model.model.layers.2.block_sparse_moe.experts.4.w2.weight"
    packed, scale = mx.encode(experts.w2[4])
    assert torch.equal(stored[f"{at}_packed"], packed)
    assert torch.equal(stored[f"{at}_scale"], scale)


def test_a_model_without_experts_keeps_its_config(small, tmp_path):
    model = small(first_k_dense_replace=4)
    for experts in (None, "dense", "packed"):
        save(model, tmp_path, experts=experts)
        assert same(load(tmp_path).state_dict(), model.state_dict())
        assert K3Config.load(tmp_path) == model.config


def test_dequantized_packs_again_without_loss(tiny, tmp_path):
    model = load(tiny, experts="dequantized")
    save(model, tmp_path, experts="packed")
    again = load(tmp_path, experts="dequantized")
    assert same(again.state_dict(), model.state_dict())


def test_wider_trunk_is_rounded_to_the_layout(tiny, tmp_path, tensors_of):
    for dtype in (torch.float32, torch.float64):
        save(load(tiny, dtype=dtype), tmp_path)
        assert same(tensors_of(tmp_path), tensors_of(tiny))


def test_values_that_cannot_be_packed_are_named(small, tmp_path):
    model = small()
    experts = model.language_model.model.layers[1].block_sparse_moe.experts
    experts.w3.data[7, 0, 0] = torch.nan
    with pytest.raises(CheckpointError, match=r"experts\.7\.w3\.weight cannot be"):
        save(model, tmp_path / "x", experts="packed")
    assert files(tmp_path / "x") == {}


@pytest.mark.parametrize("step", range(7))
def test_a_killed_save_leaves_old_or_new_or_nothing(
    step, tiny, tmp_path, tensors_of, monkeypatch
):
    old = load(tiny)
    save(old, tmp_path, max_shard_bytes=500_000)
    before = tensors_of(tmp_path)
    new = load(tiny)
    with torch.no_grad():
        for parameter in new.parameters():
            parameter.add_(1)
    renames = 0
    replace = Path.replace

    def counted(path, target):
        nonlocal renames
        if renames == step:
            raise Killed
        renames += 1
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counted)
        patch.setattr(Path, "unlink", lambda *a, **k: None)
        finished = step > 5
        if finished:
            save(new, tmp_path, max_shard_bytes=500_000)
        else:
            with pytest.raises(Killed):
                save(new, tmp_path, max_shard_bytes=500_000)
    if step == 0:
        assert same(tensors_of(tmp_path), before)
        assert same(load(tmp_path).state_dict(), old.state_dict())
    elif finished:
        assert same(load(tmp_path).state_dict(), new.state_dict())
    else:
        with pytest.raises(CheckpointError, match="a save that was cut off"):
            load(tmp_path)
    save(new, tmp_path)
    assert same(load(tmp_path).state_dict(), new.state_dict())
    assert not [path for path in tmp_path.iterdir() if "saving" in path.name]


def test_a_full_disk_keeps_the_old_checkpoint(tiny, tmp_path, monkeypatch):
    save(load(tiny), tmp_path, max_shard_bytes=500_000)
    before = files(tmp_path)

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shards.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(load(tiny), tmp_path)
    assert files(tmp_path) == before


def test_shards_of_an_older_save_go(tiny, tmp_path):
    save(load(tiny), tmp_path, max_shard_bytes=100_000)
    save(load(tiny), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"model-00001-of-000001.safetensors", INDEX, "config.json"}


def test_saving_over_the_mapped_source(copied):
    model = load(copied, experts="mmap")
    want = load(copied).state_dict()
    save(model, copied)
    assert same(load(copied).state_dict(), want)
    assert same(model.state_dict(), want)


def test_side_files_travel(copied, tmp_path):
    (copied / "tiktoken.model").write_bytes(b"ranks")
    (copied / ".hidden").touch()
    (copied / "folder").mkdir()
    assert copy_side_files(copied, tmp_path / "to") == ["tiktoken.model"]
    assert files(tmp_path / "to") == {"tiktoken.model": b"ranks"}
    with pytest.raises(CheckpointError, match="onto themselves"):
        copy_side_files(copied, copied)


def test_options_are_refused(small, tmp_path):
    model = small()
    with pytest.raises(RequestError, match=r"one of .* got 'int4'"):
        save(model, tmp_path, experts="int4")
    with pytest.raises(RequestError, match="max_shard_bytes must be positive: got 0"):
        save(model, tmp_path, max_shard_bytes=0)
    assert files(tmp_path) == {}


def test_progress_rises_to_the_total(tiny, tmp_path):
    seen = []
    save(load(tiny), tmp_path, progress=lambda done, total: seen.append(done))
    assert len(seen) == 604
    assert seen == sorted(seen)
    assert seen[-1] == 1_427_360
