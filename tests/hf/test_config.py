"""config.json survives transformers unchanged."""

import copy
import json

import pytest
import small
import torch
from transformers import AutoConfig

from k3.errors import ConfigError, RequestError
from k3.hf import KimiK3Config


def test_the_file_that_came_is_the_file_that_is_written(tmp_path):
    file = json.loads((small.TINY / "config.json").read_text())
    config = AutoConfig.from_pretrained(small.TINY, dtype="float32")
    assert type(config) is KimiK3Config
    config.save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text()
    assert json.loads(text) == file == config.to_dict() == config.to_diff_dict()
    assert list(json.loads(text)) == list(file)
    again = AutoConfig.from_pretrained(tmp_path)
    assert again.released == config.released
    assert copy.deepcopy(again).released == again.released


def test_fields_of_the_text_part_read_as_attributes():
    config = AutoConfig.from_pretrained(small.TINY)
    assert (config.vocab_size, config.num_hidden_layers) == (256, 7)
    assert config.get_text_config(decoder=True) is config
    assert (config.eos_token_id, config.pad_token_id) == (251, 255)
    assert config.dtype == torch.bfloat16
    assert not hasattr(config, "rope_theta")


def test_it_is_made_of_fields_or_of_a_k3config():
    file = json.loads((small.TINY / "config.json").read_text())
    assert KimiK3Config(**file).released == KimiK3Config.from_dict(file).released
    made, rest = KimiK3Config.from_dict(
        file, dtype="auto", return_unused_kwargs=True, x=1
    )
    assert (made.dtype, rest) == (torch.bfloat16, {"x": 1})
    with pytest.raises(ConfigError, match="text_config"):
        KimiK3Config(model_type="kimi_k3")


def test_fields_are_not_changed_at_load():
    with pytest.raises(
        RequestError, match="not changed at load: got \\['hidden_size'\\]"
    ):
        AutoConfig.from_pretrained(small.TINY, hidden_size=3)
