"""Special places: positional, named by the file, never by a constant."""

import json

import pytest

from k3.data import specials
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError


@pytest.mark.parametrize("num_ranks", [256, 300, 163_584])
def test_released_names_stand_at_the_released_offsets(num_ranks):
    table = specials.ids(specials.released_config(num_ranks), num_ranks)
    assert len(table) == 256
    assert sorted(table.values()) == list(range(num_ranks, num_ranks + 256))
    assert table["[BOS]"] == num_ranks
    assert table["<|media_pad|>"] == num_ranks + 21
    assert table["[PAD]"] == num_ranks + 255
    assert table[f"<|reserved_token_{num_ranks + 8}|>"] == num_ranks + 8


def test_the_released_size_gives_the_released_ids():
    table = specials.ids(specials.released_config(163_584), 163_584)
    assert table["<|end_of_msg|>"] == 163_586
    assert table["<|media_pad|>"] == 163_605
    assert table["<osagent_mode>"] == 163_649
    assert table["[UNK]"] == 163_838


def test_names_come_from_the_file(byte_tokenizer, tmp_path):
    config = {
        "added_tokens_decoder": {"300": {"content": "<s>"}, "511": {"content": "<p>"}},
        "bos_token": {"content": "<s>"},
        "pad_token": "<p>",
        "eos_token": None,
        "model_max_length": 7,
    }
    byte_tokenizer.save(tmp_path)
    (tmp_path / specials.FILE_NAME).write_text(json.dumps(config))
    tokenizer = Tokenizer.load(tmp_path)
    assert (tokenizer.bos_id, tokenizer.pad_id) == (300, 511)
    assert tokenizer.named_specials == {"<s>": 300, "<p>": 511}
    assert tokenizer.encode("<s>[BOS]", allow_special=True)[0] == 300
    assert len(tokenizer.encode("[BOS]", allow_special=True)) == 5
    tokenizer.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / specials.FILE_NAME).read_text()) == config


def test_without_the_file_every_place_is_reserved(byte_tokenizer, tmp_path):
    byte_tokenizer.save(tmp_path)
    (tmp_path / specials.FILE_NAME).unlink()
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.vocab_size == 512
    assert tokenizer.named_specials == {}
    assert tokenizer.special_id("<|reserved_token_256|>") == 256


@pytest.mark.parametrize("place", ["255", "512", "0"])
def test_a_place_outside_the_256_is_refused(place):
    config = {"added_tokens_decoder": {place: {"content": "<x>"}}}
    with pytest.raises(CheckpointError, match=f"'<x>' has id {place} but they are 256"):
        specials.ids(config, 256)


def test_a_name_with_two_places_is_refused():
    entry = {"content": "<x>"}
    config = {"added_tokens_decoder": {"256": entry, "257": entry}}
    with pytest.raises(CheckpointError, match="'<x>' has several"):
        specials.ids(config, 256)


@pytest.mark.parametrize("entry", [{"content": ""}, {}, "x", {"content": 3}])
def test_a_garbled_entry_is_refused(entry):
    with pytest.raises(CheckpointError, match="maps an id to"):
        specials.ids({"added_tokens_decoder": {"256": entry}}, 256)


def test_a_role_without_a_place_is_refused():
    with pytest.raises(CheckpointError, match="eos_token must be a special token"):
        specials.roles({"eos_token": "</s>"}, {"<s>": 256})


@pytest.mark.parametrize(("text", "said"), [("{", "must be JSON"), ("[]", "got list")])
def test_a_garbled_file_is_refused(tmp_path, text, said):
    path = tmp_path / specials.FILE_NAME
    path.write_text(text)
    with pytest.raises(CheckpointError, match=said):
        specials.read(path)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5, "9" * 5000])
def test_a_file_too_deep_or_too_long_is_refused(tmp_path, text):
    path = tmp_path / specials.FILE_NAME
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"must be JSON: .*; restore the file"):
        specials.read(path)


def test_a_directory_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / specials.FILE_NAME).mkdir()
    with pytest.raises(CheckpointError, match="must be readable: Is a directory"):
        specials.read(tmp_path / specials.FILE_NAME)


@pytest.mark.parametrize("added", [[], None, "x", 3])
def test_added_tokens_are_an_object(added):
    with pytest.raises(CheckpointError, match="must be an object that maps ids"):
        specials.ids({"added_tokens_decoder": added}, 256)


@pytest.mark.parametrize("key", ["²", "", "-1", " 256", "2_56", "٢٥٦", "9" * 5000])
def test_a_key_that_is_no_id_is_refused(key):
    with pytest.raises(CheckpointError, match="maps an id to") as caught:
        specials.ids({"added_tokens_decoder": {key: {"content": "<x>"}}}, 256)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("role", [["<s>"], 3, {"content": ["<s>"]}, True])
def test_a_role_that_is_no_name_is_refused(role):
    with pytest.raises(CheckpointError, match="bos_token must be a special token"):
        specials.roles({"bos_token": role}, {"<s>": 256})
