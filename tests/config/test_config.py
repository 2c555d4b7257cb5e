"""K3Config against the released file: reading, writing back, unknown fields."""

import copy
import dataclasses
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3 import recipes
from k3.config import K3Config
from k3.errors import ConfigError

GOLDEN = Path(__file__).parents[1] / "golden"


def release() -> dict:
    return json.loads((GOLDEN / "tiny_release" / "config.json").read_text())


def bare() -> dict:
    return json.loads(np.load(GOLDEN / "text14.npz")["config"].item())


@pytest.mark.parametrize("data", [release(), bare(), recipes.released().to_dict()])
def test_written_back_unchanged(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = K3Config.from_dict(data)
    assert json.dumps(config.to_dict()) == json.dumps(data)
    assert config.extra == config.text.extra == {}


def test_reads_every_level():
    config = K3Config.load(GOLDEN / "tiny_release")
    assert (config.bos_token_id, config.media_placeholder_token_id) == (250, 245)
    assert config.text.linear_attn_config.kda_layers == (1, 2, 3, 5, 6)
    assert config.text.linear_attn_config.gate_lower_bound == -5.0
    assert config.text.quantization_config.weights["group_size"] == 32
    assert config.vision.merge_kernel_size == (2, 2)
    assert config.vision.attention == "joint"
    assert not config.bare


def test_layers_are_counted_from_zero():
    text = K3Config.load(GOLDEN / "tiny_release").text
    assert text.mla_layers == (3, 6)
    assert text.kda_layers == (0, 1, 2, 4, 5)
    assert [text.is_moe(i) for i in range(3)] == [False, True, True]


def test_bare_text_config():
    config = K3Config.from_dict(bare())
    assert config.bare
    assert config.vision is None
    assert config.text.quantization_config is None
    assert (config.bos_token_id, config.eos_token_id) == (250, 251)


def test_bare_config_may_choose_the_softplus_gate():
    data = bare()
    del data["linear_attn_config"]["gate_lower_bound"]
    config = K3Config.from_dict(data)
    assert config.text.linear_attn_config.gate_lower_bound is None
    assert config.to_dict() == data


def test_absent_fields_stay_absent_and_defaults_hold():
    data = release()
    for name in ("moe_layer_freq", "topk_group", "num_nextn_predict_layers"):
        del data["text_config"][name]
    del data["pad_token_id"]
    config = K3Config.from_dict(data)
    assert config.text.topk_group == 1
    assert config.pad_token_id == 255
    assert config.to_dict() == data


def test_no_vision():
    data = release()
    del data["vision_config"], data["media_placeholder_token_id"]
    config = K3Config.from_dict(data)
    assert config.vision is None
    assert config.to_dict() == data


def test_unknown_fields_are_kept_and_named_in_one_warning():
    data = release()
    data["top_new"] = {"a": [1]}
    data["text_config"]["text_new"] = None
    data["text_config"]["linear_attn_config"]["linear_new"] = 1
    data["text_config"]["quantization_config"]["quant_new"] = []
    data["vision_config"]["vision_new"] = "x"
    with pytest.warns(UserWarning, match="does not know") as caught:
        config = K3Config.from_dict(data)
    assert len(caught) == 1
    message = str(caught[0].message)
    for name in (
        "top_new",
        "text_config.text_new",
        "text_config.linear_attn_config.linear_new",
        "text_config.quantization_config.quant_new",
        "vision_config.vision_new",
    ):
        assert name in message
    assert config.extra == {"top_new": {"a": [1]}}
    assert config.vision.extra == {"vision_new": "x"}
    assert json.dumps(config.to_dict()) == json.dumps(data)


NAMES = st.text("abcxyz_", min_size=1).map(lambda name: f"x_{name}")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_any_unknown_field_survives(extra):
    data = {**release(), **extra}
    with pytest.warns(UserWarning, match="does not know"):
        config = K3Config.from_dict(data)
    assert json.dumps(config.to_dict()) == json.dumps(data)


def test_what_comes_out_is_a_copy():
    data = release()
    config = K3Config.from_dict(data)
    before = copy.deepcopy(data)
    data["text_config"]["quantization_config"]["config_groups"].clear()
    config.to_dict()["text_config"]["linear_attn_config"]["kda_layers"].clear()
    assert config.to_dict() == before


def test_save_and_load(tmp_path):
    config = recipes.released()
    file = config.save(tmp_path / "new")
    assert K3Config.load(tmp_path / "new") == K3Config.load(file) == config
    assert [p.name for p in file.parent.iterdir()] == ["config.json"]


def test_frozen_and_hashable():
    config = recipes.released()
    with pytest.raises(AttributeError):
        config.text.hidden_size = 1
    assert hash(config) == hash(recipes.released())


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match=r"no configuration at .*config\.json"):
        K3Config.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        K3Config.load(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ConfigError, match=r"must hold a JSON object, got \[1\]"):
        K3Config.load(tmp_path)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5, "9" * 5000])
def test_a_file_too_deep_or_too_long_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json is not JSON: "):
        K3Config.load(tmp_path)


def test_a_directory_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ConfigError, match="can be read: Is a directory"):
        K3Config.load(tmp_path)
    with pytest.raises(ConfigError, match="can be read: Not a directory"):
        K3Config.load(K3Config.load(GOLDEN / "tiny_release").save(tmp_path / "x") / "y")


def test_a_field_given_twice_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"text_config": {"a": 1, "b": 2, "a": 3}}')
    with pytest.raises(ConfigError, match=r"gives a field twice: a$"):
        K3Config.load(tmp_path)


def test_unknown_fields_may_have_our_own_names():
    data = {**release(), "keys": 1, "extra": {}, "unused": [], "BOOKKEEPING": None}
    with pytest.warns(UserWarning, match="keys, extra, unused, BOOKKEEPING"):
        config = K3Config.from_dict(data)
    assert json.dumps(config.to_dict()) == json.dumps(data)


def test_an_unknown_field_can_be_dropped():
    with pytest.warns(UserWarning, match="odd"):
        config = K3Config.from_dict({**release(), "odd": 1})
    assert dataclasses.replace(config, extra={}).to_dict() == release()


def test_whole_numbers_stay_whole():
    data = release()
    data["text_config"]["activation_situ_beta"] = 4
    data["text_config"]["linear_attn_config"]["gate_lower_bound"] = -5
    assert json.dumps(K3Config.from_dict(data).to_dict()) == json.dumps(data)


def test_the_top_may_repeat_the_quantization():
    data = release()
    data["quantization_config"] = data["text_config"]["quantization_config"]
    config = K3Config.from_dict(data)
    assert config.quantization_config == config.text.quantization_config
    data["quantization_config"] = {**data["quantization_config"], "ignore": []}
    says = "quantization_config: got an object with other values, expected the same"
    with pytest.raises(ConfigError, match=says):
        K3Config.from_dict(data)
    data["dtype"] = 16
    with pytest.raises(ConfigError, match=says):
        K3Config.from_dict(data)


def test_a_bare_config_without_a_type_is_refused():
    data = bare()
    del data["model_type"]
    with pytest.raises(ConfigError, match="  model_type: got nothing"):
        K3Config.from_dict(data)


def test_a_changed_field_is_written_though_it_was_absent():
    data = release()
    del data["text_config"]["num_nextn_predict_layers"]
    config = K3Config.from_dict(data)
    text = dataclasses.replace(config.text, num_nextn_predict_layers=1)
    changed = dataclasses.replace(config, text_config=text)
    data["text_config"]["num_nextn_predict_layers"] = 1
    assert changed.to_dict() == data


def test_replace_is_validated_too():
    config = recipes.released()
    text = dataclasses.replace(config.text, num_experts_per_token=897)
    with pytest.raises(ConfigError, match="num_experts_per_token: got 897"):
        dataclasses.replace(config, text_config=text)


def test_copies_and_pickles():
    config = recipes.paper()
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
    assert pickle.loads(pickle.dumps(config)).to_dict() == config.to_dict()
