"""A draft's config: which layers are tapped under each convention, and what fails."""

import json

import pytest
from small import config

from k3.config.draft import DraftConfig
from k3.errors import ConfigError
from k3.recipes import released

DEEP = config(attn_res_block_size=1).text


def test_the_paper_taps_of_the_released_depth():
    assert DraftConfig(text=released().text).layers == (11, 47, 92)


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        ({"taps": (0, 3, -1)}, (0, 3, 6)),
        ({"taps": (1, 4, 5), "taps_of": "layer"}, (1, 4, 5)),
        ({"taps": (1, 4, 5), "taps_of": "layer", "taps_at": "input"}, (0, 3, 4)),
        ({"taps": (1, 2, -1), "taps_at": "input"}, (0, 1, 5)),
    ],
)
def test_report_58_each_convention_names_its_layers(options, layers):
    assert DraftConfig(text=DEEP, **options).layers == layers


def test_four_blocks_are_enough_and_three_are_not():
    four = config(attn_res_block_size=2).text
    assert DraftConfig(text=four).layers == (1, 6, 6)
    with pytest.raises(ConfigError, match="at least four blocks: got a target of 3"):
        DraftConfig(text=config().text)


def test_report_58_three_layers_are_tapped_once_each_and_in_range():
    three = config(
        num_hidden_layers=3, linear={"full_attn_layers": [3], "kda_layers": [1, 2]}
    ).text
    assert DraftConfig(text=three, taps=(0, 1, 2), taps_of="layer").layers == (0, 1, 2)
    for taps in [(0, 1, 1), (0, 2, -1), (0, 1)]:
        with pytest.raises(ConfigError, match="three different ones"):
            DraftConfig(text=three, taps=taps, taps_of="layer")
    for taps, at in [
        ((0, 1, 3), "output"),
        ((0, 1, 2), "input"),
        ((-4, 1, 2), "output"),
    ]:
        with pytest.raises(ConfigError, match="taps must be among"):
            DraftConfig(text=three, taps=taps, taps_of="layer", taps_at=at)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"taps_of": "head"}, "taps_of must be block or layer: got 'head'"),
        ({"taps_at": "middle"}, "taps_at must be output or input"),
        ({"draft_vocab_size": 0}, "draft_vocab_size must be 1 to 61: got 0"),
        ({"draft_vocab_size": 62}, "draft_vocab_size must be 1 to 61"),
        ({"layout": "llama"}, "layout must be mtp or fused: got 'llama'"),
        ({"layout": "fused", "experts": True}, "a fused draft has a dense MLP"),
        ({"num_speculative_steps": 0}, "num_speculative_steps must be at least 1"),
    ],
)
def test_wrong_values_are_named(options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        DraftConfig(text=DEEP, **options)


def test_it_is_written_and_read_back(tmp_path):
    made = DraftConfig(text=DEEP, taps=(0, 2, 4), draft_vocab_size=7, experts=True)
    (tmp_path / "config.json").write_text(json.dumps(made.to_dict()))
    assert DraftConfig.load(tmp_path) == made


def test_report_59_what_no_draft_obeys_is_refused():
    values = DraftConfig(text=DEEP).to_dict()
    with pytest.raises(ConfigError, match="got rope_theta, sliding_window"):
        DraftConfig.from_dict(values | {"rope_theta": 1e7, "sliding_window": 2048})
    with pytest.raises(ConfigError, match="model_type 'k3_eagle3'"):
        DraftConfig.from_dict(values | {"model_type": "kimi_k3"})


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_broken_file_is_a_sentence(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json"):
        DraftConfig.load(tmp_path)
