"""`k3 eval`: figures of a model, its exit code, and what is refused."""

import json

import pytest

from k3 import eval as evaluation
from k3.cli import app, measuring, rating
from k3.cli import eval as verb
from k3.data import corpora
from k3.data.corpora import Corpus, Document
from k3.eval import protocol
from k3.eval.compare import Compared


def test_the_tasks_are_the_text_and_every_protocol():
    assert verb.TASKS == ("text", *evaluation.PROTOCOLS)


def test_conditions_and_conversations_are_those_of_the_protocols():
    assert verb.KEYS == (*protocol.SETTABLE, "turns")
    said = [p.name for p in evaluation.PROTOCOLS.values() if p.judge != "exact"]
    assert tuple(said) == measuring.TALKED


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
        (["recall", "--set", "temprature=1"], "did you mean temperature"),
        (["recall", "--set", "turns=2"], "--set turns is of environments: none of"),
        (["recall", "--set", "effort=medium"], "effort must be none, low, high"),
        (["recall", "--judge", "http://x"], "--judge and --rubric belong to --compare"),
        (["recall", "--prices", "nowhere.json"], "a price table is a JSON file"),
        (["--compare", "recall"], "no such folder: tiny, recall"),
        (["recall", "--compare", "--judge", "http://x"], "a judge needs a rubric"),
    ],
)
def test_what_means_nothing_is_refused(arguments, sentence, capsys):
    assert app.main(["eval", "tiny", *arguments]) == app.USAGE
    assert sentence in capsys.readouterr().err


def test_an_environment_is_played_priced_and_compared(capsys, tmp_path):
    table = {"currency": "EUR", "dated": "2026-11-30", "source": "made up"}
    table["models"] = {"small": {"input": 1, "cached": 0, "output": 10}}
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(table))
    arguments = ["eval", "tiny", "calculator", "--count", "2", "--json"]
    arguments += ["--set", "max_tokens=4", "--prices", str(file), "--priced-as"]
    for name in ("a", "b"):
        out = ["--out", str(tmp_path / name)]
        assert app.main([*arguments, "small", *out]) == 0
    solved, score, cost = json.loads(capsys.readouterr().out.split("\n}\n")[1] + "}")[
        "figures"
    ]
    assert (solved["figure"], solved["count"], solved["stands"]) == ("solved", 2, True)
    assert (score["figure"], cost["figure"]) == ("score", "cost")
    assert 0 < cost["value"] < 1e-3
    lines = (tmp_path / "a" / "calculator.jsonl").read_text().splitlines()
    record = json.loads(lines[1])
    assert record["ended"] in ("length", "end")
    assert record["usage"]["written"] <= 4
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert app.main(["eval", "--compare", *folders]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["task", "run", "questions", "wins"]
    assert [row.split()[:4] for row in rows] == [
        ["calculator", "a", "2", "0.500"],
        ["calculator", "b", "2", "0.500"],
    ]


def test_conditions_that_differ_are_told_where_nobody_watches(capsys):
    made = Compared(name="recall", questions=2, differs=("temperature",), ratings=())
    rating._print([made], {"asked": 4, "unread": 1})
    said = capsys.readouterr().err
    assert "k3: note: recall differs in temperature" in said
    assert "k3: note: the judge was asked 4 times; 1 answers" in said
