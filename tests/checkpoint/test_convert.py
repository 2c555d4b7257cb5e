"""Conversion on disk: packing, unpacking, resharding, and what is refused."""

import json
import weakref

import pytest
import torch

from k3.checkpoint import header
from k3.checkpoint.convert import convert
from k3.checkpoint.load import load
from k3.checkpoint.source import Source
from k3.config import K3Config
from k3.errors import CheckpointError, RequestError
from k3.kernels import mx


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_resharding_keeps_every_byte(tiny, tmp_path, tensors_of):
    plan = convert(tiny, tmp_path / "to", max_shard_bytes=200_000)
    assert plan.experts == plan.held == "packed"
    assert plan.num_recoded == 0
    assert list(header.index(tmp_path / "to")) == [s.name for s in plan.shards]
    assert len(plan.shards) > 7
    assert all(shard.nbytes <= 200_000 for shard in plan.shards)
    assert same(tensors_of(tmp_path / "to"), tensors_of(tiny))


def test_unpack_and_pack_again(tiny, tmp_path, tensors_of):
    dense, packed = tmp_path / "dense", tmp_path / "packed"
    assert convert(tiny, dense, experts="dense").num_recoded == 198
    assert K3Config.load(dense).text.quantization_config is None
    assert "quantization_config" not in (dense / "config.json").read_text()
    stored, unpacked = tensors_of(tiny), tensors_of(dense)
    at = "language_model.model.layers.5.block_sparse_moe.experts.10.w3.weight"
    want = mx.decode(stored[f"{at}_packed"], stored[f"{at}_scale"], torch.bfloat16)
    assert torch.equal(unpacked[at], want)
    plan = convert(dense, packed, experts="packed")
    assert (plan.held, plan.experts, plan.num_recoded) == ("dense", "packed", 198)
    assert plan.total_bytes == 1_427_360
    was = K3Config.load(tiny).text.quantization_config
    assert K3Config.load(packed).text.quantization_config == was
    states = [load(d, experts="dequantized").state_dict() for d in (tiny, packed)]
    assert same(*states)


def test_dry_run_writes_nothing_and_tells_the_truth(tiny, tmp_path):
    to = tmp_path / "to"
    plan = convert(tiny, to, experts="dense", max_shard_bytes=10**6, dry_run=True)
    assert not to.exists()
    text = plan.describe()
    assert "experts packed -> dense: 198 matrices" in text
    assert "406 tensors, 1427360 bytes -> 3214112" in text
    json.dumps(plan.to_dict())
    assert convert(tiny, to, experts="dense", max_shard_bytes=10**6) == plan
    for shard in plan.to_dict()["shards"]:
        assert shard["file"] in text
        entries = header.read(to / shard["file"])
        assert len(entries) == shard["tensors"]
        assert sum(entry.nbytes for entry in entries.values()) == shard["bytes"]


def test_side_files_come_along(copied, tmp_path):
    (copied / "tiktoken.model").write_bytes(b"ranks")
    plan = convert(copied, tmp_path / "to")
    assert "tiktoken.model" in plan.side_files
    assert (tmp_path / "to" / "tiktoken.model").read_bytes() == b"ranks"
    assert "tiktoken.model  copied" in plan.describe()


def test_memory_holds_one_matrix_at_a_time(tiny, tmp_path, monkeypatch):
    alive, most = weakref.WeakSet(), 0
    tensor = Source.tensor

    def watched(source, name):
        nonlocal most
        value = tensor(source, name)
        alive.add(value)
        most = max(most, len(alive))
        return value

    monkeypatch.setattr(Source, "tensor", watched)
    convert(tiny, tmp_path / "to", experts="dense")
    assert 0 < most <= 4


def test_damaged_sources_are_refused(copied, tmp_path):
    (copied / "model-00002-of-000003.safetensors").unlink()
    with pytest.raises(
        CheckpointError, match=r"model-00002-of-000003\.safetensors is absent"
    ):
        convert(copied, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_targets_are_refused(copied, tmp_path):
    with pytest.raises(CheckpointError, match="got the source"):
        convert(copied, copied.parent / "x" / ".." / "copied")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    with pytest.raises(CheckpointError, match="is not empty; empty it or name another"):
        convert(copied, tmp_path / "full")
    with pytest.raises(CheckpointError, match="is a file"):
        convert(copied, tmp_path / "full" / "notes")
    (tmp_path / "empty").mkdir()
    assert convert(copied, tmp_path / "empty").num_tensors == 604


def test_options_are_refused(tiny, tmp_path):
    with pytest.raises(RequestError, match=r"one of .* got 'fp8'"):
        convert(tiny, tmp_path / "to", experts="fp8")
    with pytest.raises(RequestError, match="max_shard_bytes"):
        convert(tiny, tmp_path / "to", max_shard_bytes=-1)
