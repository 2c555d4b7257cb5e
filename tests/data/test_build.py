"""A corpus becomes a folder, and the folder is read back."""

import json

import numpy as np
import pytest
from safetensors import safe_open

from k3.data import build, store
from k3.data.corpora import Corpus, Document
from k3.data.corpora.pictures import Picture, Pictures
from k3.data.corpora.table import Entry
from k3.data.shard_source import ShardSource
from k3.errors import RequestError

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
FACTS = {"name": "n", "source": "s", "licence": "l", "version": "1"}


def entry(kind, train, heldout=()):
    made = Pictures if kind == "pictures" else Corpus
    corpus = made(**FACTS, train=tuple(train), heldout=tuple(heldout))
    return Entry("n", kind, "h", "l", "", lambda: corpus), corpus


def document(name, text):
    return Document(name=name, text=text)


def test_text_becomes_shards_that_give_it_back(tmp_path, byte_tokenizer):
    row, corpus = entry("text", [document("a", "é"), document("b", "xy")])
    told = []
    facts = build.build(
        row, tmp_path / "d", byte_tokenizer, told=lambda *at: told.append(at)
    )
    found = store.load(tmp_path / "d")
    assert found.facts == {"format": store.FORMAT} | facts
    assert facts["sha256"] == corpus.sha256
    assert [facts[k] for k in ("documents", "bytes", "tokens", "left_out")] == [
        2,
        4,
        8,
        0,
    ]
    assert (facts["kind"], facts["licence"], facts["vocab_size"]) == ("text", "l", 512)
    assert told == [(1, 2), (2, 2)]
    found.check(byte_tokenizer)
    source = ShardSource(found)
    texts = {byte_tokenizer.decode(source.example(i).ids[1:-1]) for i in range(2)}
    assert texts == {"é", "xy"}
    assert facts["splits"]["heldout"] == {"shards": [], "documents": 0, "tokens": 0}


def test_a_chat_keeps_what_is_learned(tmp_path, tokenizer):
    text = json.dumps({"messages": TALK})
    row, _ = entry("chat", [document("a", text)], [document("b", text)])
    build.build(row, tmp_path / "d", tokenizer)
    for split in ("train", "heldout"):
        example = ShardSource(store.load(tmp_path / "d"), split).example(0)
        said = tokenizer.decode(example.ids[example.learned])
        assert "Yo." in said
        assert "Hi" not in said


def test_pictures_keep_pixels_and_labels(tmp_path, byte_tokenizer):
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    row, _ = entry("pictures", [Picture(name="p", label="seven", pixels=pixels)])
    facts = build.build(row, tmp_path / "d", byte_tokenizer)
    assert [facts[k] for k in ("documents", "bytes", "tokens")] == [1, 60, 1]
    with safe_open(tmp_path / "d" / "train-00000.safetensors", "np") as file:
        assert (file.get_tensor("p") == pixels).all()
        assert json.loads(file.metadata()["labels"]) == {"p": "seven"}
    assert store.load(tmp_path / "d").splits == {"train": [], "heldout": []}


def test_what_keep_leaves_out_is_counted(tmp_path, byte_tokenizer):
    row, _ = entry("text", [document("a", "x"), document("b", "y")])
    facts = build.build(
        row, tmp_path / "d", byte_tokenizer, keep=lambda train, held: train[1:]
    )
    assert (facts["documents"], facts["left_out"]) == (1, 1)
    with pytest.raises(RequestError, match="all 2 of n were left out"):
        build.build(row, tmp_path / "e", byte_tokenizer, keep=lambda train, held: [])
    assert [p.name for p in tmp_path.iterdir()] == ["d"]
