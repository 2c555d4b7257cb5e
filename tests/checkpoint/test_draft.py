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


LAYER = ("q_a_proj", "q_a_layernorm", "q_b_proj", "kv_a_proj_with_mqa", "o_proj")
LAYER += ("kv_a_layernorm", "kv_b_proj", "g_proj")
NORMS = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
MLP = ("gate_proj", "up_proj", "down_proj")
PUBLIC = {
    *("model.embed_tokens.weight", "model.fc.weight", "model.norm.weight"),
    *("lm_head.weight", "d2t", "t2d"),
    *(f"model.layers.0.{name}.weight" for name in NORMS),
    *(f"model.layers.0.self_attn.{name}.weight" for name in LAYER),
    *(f"model.layers.0.mlp.{name}.weight" for name in MLP),
}


@pytest.fixture
def fused(tmp_path):
    text = config(attn_res_block_size=1).text
    options = {"layout": "fused", "draft_vocab_size": 4}
    made = Draft(DraftConfig(text=text, **options), torch.float32)
    made.d2t.copy_(torch.tensor([0, 2, 5, 6]))
    folder.save(made, tmp_path)
    return made, tmp_path


def test_a_fused_draft_has_the_names_of_the_public_ones(fused):
    made, path = fused
    tensors = load_file(path / folder.FILE_NAME)
    assert set(tensors) == PUBLIC
    assert tensors["t2d"].nonzero()[:, 0].tolist() == [0, 3, 7, 9]
    read = folder.load(path)
    assert read.fused
    for name, value in made.state_dict().items():
        assert torch.equal(read.state_dict()[name], value), name
    change(path, lambda tensors: tensors.pop("t2d"))
    folder.load(path)


def test_report_38_a_mask_that_contradicts_the_table_is_refused(fused):
    _, path = fused
    change(path, lambda t: t.__setitem__("t2d", t["t2d"].roll(1)))
    with pytest.raises(CheckpointError, match="t2d flags the 4 of 61 tokens that d2t"):
        folder.load(path)
