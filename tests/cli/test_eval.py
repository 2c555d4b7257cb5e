"""`k3 eval`: figures of a model, its exit code, and what is refused."""

import json

import pytest

from k3 import eval as evaluation
from k3.cli import app
from k3.cli import eval as verb
from k3.data import corpora
from k3.data.corpora import Corpus, Document


def test_the_tasks_are_the_text_and_every_protocol():
    assert verb.TASKS == ("text", *evaluation.PROTOCOLS)


def test_a_table_has_a_row_for_each_figure(capsys):
    assert app.main(["eval", "tiny", "recall", "tools", "--count", "2"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["task", "figure", "count", "value", "95", "%", "interval"]
    assert [row.split()[:3] for row in rows] == [
        ["recall", "right", "2"],
        ["tools", "valid", "2"],
        ["tools", "right", "2"],
    ]


def test_json_holds_every_figure_and_the_transcript_is_kept(
    capsys, tmp_path, monkeypatch
):
    documents = tuple(
        Document(name=str(i), text="Return True. " * i) for i in (1, 2, 3)
    )
    corpus = Corpus(
        name="x", source="", licence="", version="", train=(), heldout=documents
    )
    monkeypatch.setattr(corpora, "stdlib", lambda: corpus)
    arguments = ["eval", "tiny", "recall", "text", "--count", "2", "--json"]
    assert app.main([*arguments, "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    recall, text = found["figures"]
    assert (recall["task"], recall["count"], recall["stands"]) == ("recall", 2, True)
    assert (text["figure"], text["count"], text["stands"]) == (
        "bits_per_byte",
        2,
        False,
    )
    assert 0 < text["low"] <= text["value"] <= text["high"] < 4
    assert len((tmp_path / "recall.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(("least", "code"), [("0", 0), ("1", 1)])
def test_at_least_decides_the_exit_code(least, code, capsys):
    arguments = ["eval", "tiny", "chat", "--count", "12", "--json"]
    assert app.main([*arguments, "--at-least", least]) == code
    assert json.loads(capsys.readouterr().out)["ok"] is (code == 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["mmlu"], "TASK must be one of text, digits"),
        (["recall", "--count", "0"], "--count must be at least 1: got 0"),
        (["recall", "--at-least", "95"], "--at-least is a share from 0 to 1: got 95"),
        (["recall", "--experts", "int4"], "--experts must be"),
    ],
)
def test_what_means_nothing_is_refused(arguments, sentence, capsys):
    assert app.main(["eval", "tiny", *arguments]) == app.USAGE
    assert sentence in capsys.readouterr().err
