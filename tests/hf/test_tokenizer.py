"""The tokenizer under transformers' interface, and chats rendered by xtml."""

import json
import pickle
import shutil
from functools import cache

import pytest
import torch
from transformers import AutoTokenizer

import k3
from k3.checkpoint import locate
from k3.data import xtml
from k3.errors import RequestError
from k3.hf import KimiK3Tokenizer

CHAT = [{"role": "user", "content": "Say <|open|> & hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


@cache
def folder():
    return locate.locate("tiny")


@cache
def tokenizer():
    return AutoTokenizer.from_pretrained(folder())


def test_ids_text_and_padding_are_k3s():
    core = k3.tokenizer("tiny")
    texts = ["Return True, é", "a", ""]
    out = tokenizer()(texts, padding=True, return_tensors="pt")
    for text, ids, mask in zip(
        texts, out["input_ids"], out["attention_mask"], strict=True
    ):
        kept = ids[mask.bool()].tolist()
        assert kept == core.encode(text)
        assert tokenizer().decode(kept) == text
        assert mask.sum() == 0 or mask[-1] == 1
    assert out["input_ids"][1, 0] == tokenizer().pad_token_id == core.pad_id
    assert tokenizer().eos_token_id == core.eos_id
    assert len(tokenizer()) == tokenizer().vocab_size == core.vocab_size
    assert tokenizer().tokenize(" a list") == ["Ġa", "Ġlist"]


def test_names_of_specials_are_text_unless_asked():
    text = "a<|open|>b[EOS]"
    core = k3.tokenizer("tiny")
    assert tokenizer()(text)["input_ids"] == core.encode(text)
    special = tokenizer()(text, split_special_tokens=False)["input_ids"]
    assert special == core.encode(text, allow_special=True)
    assert tokenizer().decode(special) == text
    assert tokenizer().decode(special, skip_special_tokens=True) == "ab"
    assert tokenizer().decode(special[0]) == "a"
    tokens = tokenizer().convert_ids_to_tokens(special)
    assert tokens[1] == "<|open|>"
    assert tokenizer().convert_tokens_to_ids(tokens) == special
    assert tokenizer().convert_tokens_to_string(tokens) == text
    with pytest.raises(RequestError, match="a token must be of the vocabulary"):
        tokenizer().convert_tokens_to_ids(["no such token"])


def test_chats_are_rendered_segment_by_segment():
    core, options = k3.tokenizer("tiny"), xtml.RenderOptions(tools=[TOOL])
    wanted = xtml.render(CHAT, options)
    how = {"tools": [TOOL], "thinking": True, "add_generation_prompt": True}
    out = tokenizer().apply_chat_template(CHAT, **how)
    assert out["input_ids"] == wanted.encode(core)
    assert tokenizer().apply_chat_template(CHAT, tokenize=False, **how) == wanted.text
    plain = tokenizer().apply_chat_template(CHAT, thinking=False, return_dict=False)
    off = xtml.RenderOptions(thinking=False, add_generation_prompt=False)
    assert plain == xtml.render(CHAT, off).encode(core)


def test_chats_in_a_batch_and_tools_as_functions():
    def look(name: str) -> str:
        """Look something up.

        Args:
            name: What to look up.
        """
        return name

    long = [*CHAT, {"role": "assistant", "content": "Hi"}, *CHAT]
    out = tokenizer().apply_chat_template(
        [CHAT, long], tools=[look], padding=True, return_tensors="pt", thinking=False
    )
    assert out["input_ids"].shape == out["attention_mask"].shape
    assert out["attention_mask"].sum(1).tolist()[0] < out["input_ids"].shape[1]
    assert '"name":"look"' in tokenizer().decode(out["input_ids"][0])
    one = tokenizer().apply_chat_template(CHAT, return_tensors="pt")
    assert isinstance(one["input_ids"], torch.Tensor)
    assert one["input_ids"].dim() == 2
    with pytest.raises(RequestError, match="documents must be absent"):
        tokenizer().apply_chat_template(CHAT, documents=[{}])
    with pytest.raises(RequestError, match=r"^thinking_effort must be"):
        tokenizer().apply_chat_template(CHAT, thinking_effort="medium")


def test_both_files_are_written_as_they_came(tmp_path):
    written = tokenizer().save_pretrained(tmp_path)
    assert len(written) == 2
    for name in ("tiktoken.model", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (folder() / name).read_bytes()


def test_the_name_in_the_released_file_leads_here(tmp_path):
    for name in ("config.json", "tiktoken.model"):
        shutil.copy(folder() / name, tmp_path)
    file = json.loads((folder() / "tokenizer_config.json").read_text())
    file |= {
        "tokenizer_class": "TikTokenTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(file))
    found = AutoTokenizer.from_pretrained(tmp_path, padding_side="right")
    assert type(found) is KimiK3Tokenizer
    assert found.padding_side == "right"
    found.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text()) == file
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    with pytest.raises(RequestError, match="holds 'bert'"):
        AutoTokenizer.from_pretrained(tmp_path)


def test_it_can_be_sent_to_another_process_and_refuses_other_options():
    again = pickle.loads(pickle.dumps(tokenizer()))
    assert again("hello")["input_ids"] == tokenizer()("hello")["input_ids"]
    with pytest.raises(RequestError, match=r"the tokenizer takes .*got add_bos_token"):
        KimiK3Tokenizer(k3.tokenizer("tiny"), add_bos_token=True)
