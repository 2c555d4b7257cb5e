"""What vLLM and SGLang read of a checkpoint, in the files that we write."""

import json

import small
import torch
from safetensors import safe_open

import k3
from k3.checkpoint import save


def described(folder):
    """Name -> (shape, dtype) of every tensor, through the index as engines go."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    found = {}
    for name, file in index["weight_map"].items():
        with safe_open(folder / file, "pt") as opened:
            view = opened.get_slice(name)
            found[name] = (tuple(view.get_shape()), view.get_dtype())
    return found, index["metadata"]["total_size"]


def test_a_saved_checkpoint_has_the_released_layout(tmp_path):
    for dtype in (torch.bfloat16, torch.float32):
        folder = tmp_path / str(dtype)
        save.save(k3.load(small.TINY, dtype=dtype), folder, max_shard_bytes=600_000)
        assert described(folder) == described(small.TINY)
        ours = json.loads((folder / "config.json").read_text())
        assert ours == json.loads((small.TINY / "config.json").read_text())


def test_the_config_says_what_the_engines_look_for(tmp_path):
    save.save(k3.load(small.TINY), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["KimiK3ForConditionalGeneration"]
    assert config["model_type"] == "kimi_k3"
    text = config["text_config"]
    assert text["model_type"] == "kimi_linear"
    quantization = text["quantization_config"]
    assert quantization["quant_method"] == "compressed-tensors"
    assert quantization["format"] == "mxfp4-pack-quantized"
    group = quantization["config_groups"]["group_0"]
    assert group["targets"] == ["Linear"]
    assert group["weights"]["num_bits"] == 4
    assert group["weights"]["group_size"] == 32
    assert group["weights"]["scale_dtype"] == "torch.uint8"
    found, _ = described(tmp_path)
    packed = {name for name, (_, dtype) in found.items() if dtype == "U8"}
    experts = {n for n in found if ".block_sparse_moe.experts." in n}
    assert packed == experts
    assert all(n.endswith(("weight_packed", "weight_scale")) for n in experts)
    wide = {n.rsplit(".", 2)[-1] for n, (_, dtype) in found.items() if dtype == "F32"}
    assert wide == {"A_log", "dt_bias", "e_score_correction_bias", "weight"}
