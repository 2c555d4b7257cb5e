"""A recipe refuses what cannot run, and settings by names that do not exist."""

import dataclasses
import json

import pytest

from k3 import recipes
from k3.config import sizes
from k3.errors import ConfigError, RequestError


def test_tiny_has_every_mechanism_and_the_size_it_promises():
    config = recipes.tiny().config
    text = config.text
    assert text.linear_attn_config.full_attn_layers == (4, 8, 9)
    assert text.num_hidden_layers == 9
    assert -(-text.num_hidden_layers // text.attn_res_block_size) >= 5
    assert (text.num_experts, text.num_experts_per_token) == (8, 2)
    assert text.num_shared_experts == 2
    assert text.quantization_config is not None
    assert config.vision is not None
    assert 1e6 < sizes.parameters(config).total < 2.5e6


def test_settings_replace_values_as_text_or_numbers():
    recipe = recipes.tiny().set({"steps": "7", "learning_rate": 1, "window": 64})
    assert (recipe.steps, recipe.learning_rate, recipe.window) == (7, 1.0, 64)
    assert recipes.tiny().set({}) == recipes.tiny()


def test_an_unknown_setting_is_refused_by_name():
    with pytest.raises(RequestError, match="no setting 'step' in recipe tiny: choose"):
        recipes.tiny().set({"step": "7"})


def test_a_setting_of_another_type_is_refused():
    with pytest.raises(RequestError, match="setting steps must be of type int: got '"):
        recipes.tiny().set({"steps": "many"})


def test_all_wrong_values_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        recipes.tiny().set({"steps": 0, "warmup": 2, "stages": "0.5:64:2"})
    message = str(caught.value)
    assert "steps must be at least 1: got 0" in message
    assert "warmup must be from 0 to 1: got 2.0" in message
    assert "fractions of stages must add up to 1: got 0.5" in message


def test_vocabulary_is_ranks_and_specials():
    with pytest.raises(ConfigError, match=r"num_ranks \+ 256 = 1256: got 1792"):
        dataclasses.replace(recipes.tiny(), num_ranks=1000)


def test_a_recipe_is_json():
    values = json.loads(json.dumps(recipes.tiny().to_dict()))
    assert values["config"]["text_config"]["hidden_size"] == 128
    assert values["corpus"] == "stdlib"


@pytest.mark.parametrize("seed", ["-1", str(2**63), "9" * 30])
def test_a_seed_that_torch_cannot_take_is_refused(seed):
    with pytest.raises(ConfigError, match=r"seed must be from 0 to 2\*\*63 - 1: got"):
        recipes.tiny().set({"seed": seed})


@pytest.mark.parametrize(
    "key", ["learning_rate", "weight_decay", "clip", "bias_rate", "checkpoint_minutes"]
)
@pytest.mark.parametrize("value", ["inf", "nan", "1e999"])
def test_numbers_are_finite(key, value):
    with pytest.raises(ConfigError, match=f"{key} must be .* and finite: got"):
        recipes.tiny().set({key: value})


def test_the_largest_seed_is_accepted():
    assert recipes.tiny().set({"seed": 2**63 - 1}).seed == 2**63 - 1
