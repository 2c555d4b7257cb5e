"""The published configuration and the paper's."""

import json
from pathlib import Path

from k3 import recipes

TINY = Path(__file__).parent / "golden" / "tiny_release" / "config.json"


def same_keys(ours, theirs):
    if not isinstance(ours, dict):
        return True
    return list(ours) == list(theirs) and all(
        same_keys(ours[k], theirs[k]) for k in ours
    )


def test_released_has_every_field_of_a_released_file():
    assert same_keys(recipes.released().to_dict(), json.loads(TINY.read_text()))


def test_released_values():
    config = recipes.released()
    assert config.text.num_nextn_predict_layers == 0
    assert config.text.linear_attn_config.full_attn_layers[-3:] == (88, 92, 93)
    assert config.text.rms_norm_eps == 1e-5
    assert (config.bos_token_id, config.eos_token_id) == (163584, 163586)
    assert config.vision.qkv_hidden_size == 1536
    assert config.extra == {}


def test_paper_differs_in_the_mtp_layer_only():
    ours, theirs = recipes.paper().to_dict(), recipes.released().to_dict()
    assert ours["text_config"].pop("num_nextn_predict_layers") == 1
    assert theirs["text_config"].pop("num_nextn_predict_layers") == 0
    assert ours == theirs


def test_recipes_do_not_share_state():
    recipes.paper().to_dict()["text_config"].clear()
    assert recipes.paper().text.vocab_size == 163840
