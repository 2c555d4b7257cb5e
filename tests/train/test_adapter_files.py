"""Adapters on the disk, in peft's layout."""

import json

import pytest
import torch
import toy
from safetensors.torch import load_file, save_file

from k3.errors import CheckpointError
from k3.model import Model
from k3.train import adapter_files, lora
from k3.train.lora import Options

IDS = torch.tensor([[5, 9, 2, 77, 31]])
PATH = "language_model.model.layers.3.self_attn.q_b_proj"


def fresh():
    return Model(toy.config(), dtype=torch.float32).init_weights(3)


@pytest.fixture
def folder(tmp_path):
    """Adapters that do something, of two ranks' width, on two kinds of layer."""
    model = fresh()
    lora.attach(model, Options(targets=("q_b_proj", "up_proj"), rank=2, alpha=5.0))
    for layer in lora.adapted(model).values():
        torch.nn.init.normal_(layer.lora_B, std=0.1)
    adapter_files.write(model, tmp_path, base="some/model")
    with torch.no_grad():
        torch.save(model(IDS), tmp_path / "logits")
    return tmp_path


@torch.no_grad()
def test_what_is_written_is_read(folder):
    model = fresh()
    paths = adapter_files.load(model, folder)
    assert PATH in paths
    assert torch.equal(model(IDS), torch.load(folder / "logits"))


def test_the_layout_is_pefts(folder):
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 2, 5.0)
    assert config["base_model_name_or_path"] == "some/model"
    assert PATH in config["target_modules"]
    tensors = load_file(folder / "adapter_model.safetensors")
    assert tensors[f"base_model.model.{PATH}.lora_A.weight"].shape == (2, 16)
    assert tensors[f"base_model.model.{PATH}.lora_B.weight"].shape == (24, 2)


def change(folder, **values):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"peft_type": "IA3"}, "peft_type='IA3' is not supported"),
        ({"bias": "all"}, "bias='all' is not supported"),
        ({"use_dora": True}, "use_dora=True is not supported"),
        ({"use_rslora": True}, "use_rslora=True is not supported"),
        ({"rank_pattern": {"q": 3}}, "rank_pattern="),
        ({"r": 3}, r"lora_A.weight is not \[3, "),
        ({"r": "x"}, "is not"),
        ({"lora_alpha": -1}, "an alpha above 0"),
    ],
)
def test_a_config_that_means_something_else_is_refused(folder, values, told):
    change(folder, **values)
    model = fresh()
    with pytest.raises(CheckpointError, match=told):
        adapter_files.load(model, folder)
    assert not lora.adapted(model)


@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.safetensors"])
@pytest.mark.parametrize("size", [None, 0, 30])
def test_an_absent_or_cut_file_is_refused(folder, file, size):
    path = folder / file
    content = path.read_bytes()
    path.unlink()
    if size is not None:
        path.write_bytes(content[:size])
    with pytest.raises(CheckpointError, match="in peft's layout"):
        adapter_files.load(fresh(), folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda t: t.update(other=torch.zeros(1)),
        lambda t: t.pop(f"base_model.model.{PATH}.lora_B.weight"),
        lambda t: t.clear(),
        lambda t: t.update({"base_model.model.x.lora_A.weight": torch.zeros(2, 2)}),
    ],
)
def test_tensors_of_another_model_are_refused(folder, edit):
    tensors = load_file(folder / "adapter_model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "adapter_model.safetensors")
    model = fresh()
    with pytest.raises(CheckpointError, match="an adapter is one of this model"):
        adapter_files.load(model, folder)
    assert not lora.adapted(model)


def test_a_model_without_adapters_has_nothing_to_write(tmp_path):
    with pytest.raises(CheckpointError, match="this model has none"):
        adapter_files.write(fresh(), tmp_path)


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.filterwarnings("ignore")
def test_peft_reads_our_adapter_on_the_hf_model(folder):
    """peft 0.21: the same logits from its layers as from ours."""
    from peft import PeftModel

    from k3.hf import KimiK3Config, KimiK3ForConditionalGeneration

    core = fresh()
    wrapped = KimiK3ForConditionalGeneration(KimiK3Config(released=core.config), core)
    plain = wrapped(IDS).logits
    adapted = PeftModel.from_pretrained(wrapped, str(folder))
    found = adapted.get_base_model()(IDS).logits
    assert (found - plain).abs().max() > 1e-3
    torch.testing.assert_close(
        found, torch.load(folder / "logits"), rtol=1e-5, atol=1e-5
    )
