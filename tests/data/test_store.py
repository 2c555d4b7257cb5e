"""A folder of shards: whole or refused, new or not written."""

import json

import pytest
import torch

from k3.data import store
from k3.data.examples import Example
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError, RequestError


def example(*ids):
    learned = torch.ones(len(ids), dtype=torch.bool)
    learned[0] = False
    return Example(ids=torch.tensor(ids), learned=learned, domain="d")


def build(directory, tokenizer="t"):
    """Three documents in two shards."""
    with store.writing(directory) as part:
        writer = store.Writer(part, "train", tokens=5)
        for document in (example(1, 2), example(3, 4, 5), example(6)):
            writer.add(document)
        writer.flush()
        splits = {"train": {"shards": writer.shards}}
        store.write_facts(part, {"name": "n", "tokenizer": tokenizer, "splits": splits})
    return directory


def test_a_shard_ends_where_the_next_document_would_not_fit(tmp_path):
    found = store.load(build(tmp_path / "d"))
    assert [s.tokens.tolist() for s in found.splits["train"]] == [[1, 2, 3, 4, 5], [6]]
    assert found.name == "n"
    listed = [
        (e["documents"], e["tokens"]) for e in found.facts["splits"]["train"]["shards"]
    ]
    assert listed == [(2, 5), (1, 1)]
    names = sorted(p.name for p in (tmp_path / "d").iterdir())
    assert names == ["DATA.json", "train-00000.safetensors", "train-00001.safetensors"]
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_a_document_longer_than_a_shard_has_one_of_its_own(tmp_path):
    writer = store.Writer(tmp_path, "train", tokens=2)
    for document in (example(1), example(2, 3, 4), example(5)):
        writer.add(document)
    writer.flush()
    assert [entry["tokens"] for entry in writer.shards] == [1, 3, 1]


def test_what_fails_half_way_leaves_nothing(tmp_path):
    def fail(part):
        (part / "half").write_text("x")
        return 1 // 0

    with pytest.raises(ZeroDivisionError), store.writing(tmp_path / "d") as part:
        fail(part)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_not_written_over(tmp_path):
    build(tmp_path / "d")
    with pytest.raises(RequestError, match="with files in it; choose another"):
        build(tmp_path / "d")
    (tmp_path / "empty").mkdir()
    assert store.load(build(tmp_path / "empty")).name == "n"


@pytest.mark.parametrize("file", ["train-00000.safetensors", "train-00001.safetensors"])
def test_one_wrong_bit_is_seen(tmp_path, file):
    path = build(tmp_path / "d") / file
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="another sha256"):
        store.load(tmp_path / "d")
    assert store.load(tmp_path / "d", verify=False).name == "n"


def test_a_shard_of_another_build_is_seen_without_hashing(tmp_path):
    directory = build(tmp_path / "d")
    (directory / "train-00001.safetensors").replace(
        directory / "train-00000.safetensors"
    )
    with pytest.raises(CheckpointError, match="1 tokens"):
        store.load(directory, verify=False)


def change(directory, edit):
    path = directory / store.FILE_NAME
    facts = json.loads(path.read_text())
    edit(facts)
    path.write_text(json.dumps(facts))


@pytest.mark.parametrize(
    "edit",
    [
        lambda facts: facts.pop("splits"),
        lambda facts: facts.update(splits=[]),
        lambda facts: facts.update(format="other"),
        lambda facts: facts["splits"]["train"]["shards"][0].pop("bytes"),
        lambda facts: facts["splits"]["train"]["shards"][0].update(
            file="../d/DATA.json"
        ),
    ],
)
def test_facts_that_are_not_ours_are_refused(tmp_path, edit):
    change(build(tmp_path / "d"), edit)
    with pytest.raises(CheckpointError, match="build it again"):
        store.load(tmp_path / "d")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_facts_that_are_no_json_object_are_refused(tmp_path, content):
    (build(tmp_path / "d") / store.FILE_NAME).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"DATA\.json is not"):
        store.load(tmp_path / "d")


def test_a_folder_without_facts_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="run k3 data build"):
        store.load(tmp_path)


def test_ids_are_read_with_their_own_tokenizer(tmp_path, tokenizer, byte_tokenizer):
    found = store.load(build(tmp_path / "d", store.fingerprint(tokenizer)))
    found.check(Tokenizer(tokenizer.ranks))
    with pytest.raises(CheckpointError, match="has those of another"):
        found.check(byte_tokenizer)
    renamed = Tokenizer(tokenizer.ranks, {})
    with pytest.raises(CheckpointError, match="has those of another"):
        found.check(renamed)
