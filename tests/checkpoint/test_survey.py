"""What is refused before a model exists: every damage by name, all in one error."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from k3.checkpoint import load as loading
from k3.checkpoint.load import load
from k3.errors import CheckpointError

MODES = ["packed", "dequantized", "mmap"]
MOE = "language_model.model.layers.1.block_sparse_moe."
KDA = "language_model.model.layers.1.self_attn."
INDEX = "model.safetensors.index.json"


def shard(number: int) -> str:
    return f"model-0000{number}-of-000003.safetensors"


@pytest.fixture
def refused(monkeypatch):
    """Load what must be refused, before a model is even made; return the message."""

    def check(folder: Path, experts: str = "packed") -> str:
        with monkeypatch.context() as patch:
            patch.setattr(loading, "Model", None)
            with pytest.raises(CheckpointError) as caught:
                load(folder, experts=experts)
        return str(caught.value)

    return check


def test_report_8_missing_shard(copied, refused):
    (copied / shard(2)).unlink()
    message = refused(copied)
    assert f"{shard(2)} is absent: 280 tensors" in message
    assert "1 problem\n" in message


def test_report_8_expert_gone_from_the_index(copied, refused):
    path = copied / INDEX
    index = json.loads(path.read_text())
    gone = [n for n in index["weight_map"] if n.startswith(f"{MOE}experts.7.")]
    for name in gone:
        del index["weight_map"][name]
    path.write_text(json.dumps(index))
    message = refused(copied)
    assert len(gone) == 6
    for name in gone:
        assert f"{name} is in {shard(1)} but not in the index" in message


def test_report_8_empty_folder_and_folder_named_as_a_shard(tmp_path, refused, tiny):
    shutil.copy(tiny / "config.json", tmp_path)
    assert "holds no weights" in refused(tmp_path)
    (tmp_path / "x.safetensors").mkdir()
    assert "holds no weights" in refused(tmp_path)
    (tmp_path / "model.safetensors").mkdir()
    assert "model.safetensors is a directory" in refused(tmp_path)


def test_shards_that_nobody_can_read_say_nothing_of_what_is_in_them(copied, refused):
    """The index still tells that experts are packed."""
    for file in copied.glob("*.safetensors"):
        file.write_bytes(b"\xff" * 100)
    message = refused(copied)
    assert "3 problems" in message
    assert "is missing" not in message


def test_of_many_problems_the_first_are_told(copied, edit, refused):
    extra = {f"extra.{i}": torch.zeros(1) for i in range(30)}
    edit(copied, 1, lambda tensors: tensors.update(extra))
    message = refused(copied)
    assert "30 problems" in message
    assert len(message.splitlines()) == 22
    assert message.endswith("... and 10 more: the error's `problems` lists all")
    with pytest.raises(CheckpointError) as caught:
        load(copied)
    assert [line.split()[0] for line in caught.value.problems] == sorted(extra)


@pytest.mark.parametrize("mode", MODES)
def test_report_8_everything_wrong_is_in_one_error(mode, copied, edit, refused):
    def damage(tensors):
        del tensors[f"{MOE}experts.3.w2.weight_packed"]
        tensors[f"{MOE}experts.4.w1.weight_scale"][5, 1] = 255
        tensors[f"{KDA}A_log"][6] = 0.25
        tensors[f"{KDA}q_proj.weight"] = torch.zeros(3, 3, dtype=torch.bfloat16)
        tensors[f"{KDA}dt_bias"] = tensors[f"{KDA}dt_bias"].bfloat16()
        tensors[f"{MOE}extra.weight"] = torch.zeros(1)

    edit(copied, 1, damage)
    with (copied / shard(2)).open("r+b") as stream:
        stream.truncate(100_000)
    path = copied / INDEX
    index = json.loads(path.read_text())
    index["weight_map"]["ghost"] = "model-00004-of-000003.safetensors"
    index["weight_map"]["phantom"] = shard(1)
    path.write_text(json.dumps(index))
    message = refused(copied, mode)
    for line in (
        f"{MOE}experts.3.w2.weight_packed is missing: expected U8 (64, 48)",
        f"{MOE}experts.4.w1.weight_scale has scale byte 255, which is NaN, in 1 groups,"
        " first in row 5, group 1",
        f"{KDA}A_log has 5 heads and then zeros: got 0.25 at 6",
        f"{KDA}q_proj.weight has shape (3, 3): expected (80, 40)",
        f"{KDA}dt_bias has dtype BF16: expected F32",
        f"{MOE}extra.weight is unexpected: the config has no such tensor",
        "model-00004-of-000003.safetensors is absent: 1 tensors, ghost ...",
        f"phantom is in the index but not in {shard(1)}",
        "ends at byte",
        "the file is cut off",
    ):
        assert line in message
    assert f"{MOE}experts.3.w1.weight_packed" not in message


def test_report_34_unused_and_unfilled_tensors(copied, edit, refused):
    norm = f"{MOE}routed_expert_norm.weight"
    edit(copied, 1, lambda tensors: tensors.pop(norm))
    assert f"{norm} is missing: expected BF16 (64,)" in refused(copied)
    late = f"{MOE}routed_expert_late_norm.weight"
    edit(copied, 1, lambda tensors: tensors.update({late: torch.zeros(64)}))
    message = refused(copied)
    assert f"{late} is unexpected" in message
    assert "2 problems" in message


def test_report_34_vision_without_a_vision_config(copied, refused):
    values = json.loads((copied / "config.json").read_text())
    del values["vision_config"]
    (copied / "config.json").write_text(json.dumps(values))
    message = refused(copied)
    assert "24 problems" in message
    assert "mm_projector.post_norm.weight is unexpected" in message


def test_report_40_scales_of_another_group_or_dtype(copied, edit, refused):
    name = f"{MOE}experts.10.w1.weight_scale"

    def of_16(tensors):
        tensors[name] = tensors[name].repeat(1, 2)

    def wide(tensors):
        tensors[name] = torch.ones(96, 2)

    edit(copied, 1, of_16)
    assert f"{name} has shape (96, 4): expected (96, 2), one byte for 32 values" in (
        refused(copied)
    )
    edit(copied, 1, wide)
    assert f"{name} has dtype F32: expected U8" in refused(copied)


@pytest.mark.parametrize("length", [4, 6, 7, 128])
def test_report_50_other_lengths_are_refused(length, copied, edit, refused):
    name = f"{KDA}A_log"
    edit(copied, 1, lambda tensors: tensors.update({name: torch.zeros(length)}))
    message = refused(copied)
    assert f"{name} has shape ({length},): expected a length of 16 or 8 or 5" in message


def test_report_52_nan_scale_is_refused_by_name(copied, edit, refused):
    names = [f"{MOE}experts.{e}.w2.weight_scale" for e in (0, 10)]

    def damage(tensors):
        for name in names:
            tensors[name][63, 2] = 255

    edit(copied, 1, damage)
    message = refused(copied)
    for name in names:
        assert f"{name} has scale byte 255" in message
    assert "2 problems" in message


def test_a_tensor_in_two_shards(copied, refused):
    (copied / INDEX).unlink()
    first = copied / shard(1)
    first.write_bytes((copied / shard(2)).read_bytes())
    message = refused(copied)
    twice = "language_model.lm_head.weight"
    assert f"{twice} is in {shard(1)} and in {shard(2)}" in message


def test_without_an_index_a_lost_shard_is_one_problem(copied, refused):
    (copied / INDEX).unlink()
    (copied / shard(2)).unlink()
    message = refused(copied)
    assert "1 problem\n" in message
    assert f"{shard(2)} is absent" in message
    with (copied / shard(1)).open("r+b") as stream:
        stream.truncate(1000)
    message = refused(copied)
    assert "2 problems\n" in message
    assert "is cut off" in message
