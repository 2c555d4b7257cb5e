"""A draft's folder: what was saved comes back, and nothing is missing or too much."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from small import config

from k3.checkpoint import draft as folder
from k3.config.draft import DraftConfig
from k3.errors import CheckpointError
from k3.model.draft import Draft


@pytest.fixture
def saved(tmp_path):
    text = config(attn_res_block_size=1).text
    made = Draft(DraftConfig(text=text, draft_vocab_size=4), torch.float32)
    made.d2t.copy_(torch.tensor([0, 2, 5, 6]))
    folder.save(made, tmp_path)
    return made, tmp_path


def change(path, edit):
    file = path / folder.FILE_NAME
    tensors = load_file(file)
    edit(tensors)
    save_file(tensors, file)


def test_it_comes_back(saved):
    made, path = saved
    read = folder.load(path)
    for name, value in made.state_dict().items():
        assert torch.equal(read.state_dict()[name], value), name
    assert not any(p.requires_grad for p in read.parameters())
    assert sorted(p.name for p in path.iterdir()) == ["config.json", folder.FILE_NAME]


def test_report_38_a_missing_table_is_refused(saved):
    _, path = saved
    change(path, lambda tensors: tensors.pop("d2t"))
    with pytest.raises(CheckpointError, match="d2t is missing"):
        folder.load(path)


def test_report_38_a_table_of_absolute_ids_is_refused(saved):
    _, path = saved
    change(path, lambda t: t.__setitem__("d2t", torch.tensor([0, 3, 7, 60])))
    with pytest.raises(CheckpointError, match="d2t holds offsets"):
        folder.load(path)


def test_every_wrong_tensor_is_named(saved):
    _, path = saved

    def edit(tensors):
        del tensors["enorm.weight"]
        tensors["extra"] = torch.zeros(1)
        tensors["fc.weight"] = torch.zeros(2, 3)

    change(path, edit)
    with pytest.raises(CheckpointError) as caught:
        folder.load(path)
    for part in ("enorm.weight is missing", "extra is not", r"fc.weight is [2, 3]"):
        assert part in str(caught.value)


def test_a_cut_file_is_a_sentence(saved):
    _, path = saved
    file = path / folder.FILE_NAME
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="copy the whole folder"):
        folder.load(path)


def test_all_tokens_need_no_table(tmp_path):
    text = config(attn_res_block_size=1).text
    folder.save(Draft(DraftConfig(text=text), torch.bfloat16), tmp_path)
    assert "d2t" not in load_file(tmp_path / folder.FILE_NAME)
    assert folder.load(tmp_path).fc.weight.dtype == torch.bfloat16
    assert "draft_vocab_size" not in json.loads((tmp_path / "config.json").read_text())
