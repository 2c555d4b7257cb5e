"""Marks follow from evidence alone."""

from k3.reader import status, theorems, verdicts
from k3.reader.chapter import Claim


def words(**given):
    claim = Claim(**{"id": "a", "section": "1", "text": "", **given})
    return [mark.word for mark in status.marks(claim)]


def test_without_evidence_it_is_only_reported():
    assert words() == ["reported only"]


def test_each_piece_gives_its_mark():
    assert words(code=("k3.spec.kda:update",)) == ["written"]
    assert words(text="{= 1 =}") == ["executable"]
    assert words(theorems=("situ.output_bound",)) == ["proved"]
    assert words(exact="kda.recurrent") == ["exact", "agrees"]
    assert words(exact="mx.decode") == ["agrees"]


def test_old_or_missing_evidence_is_stale(monkeypatch):
    assert words(theorems=("none.at_all",)) == ["stale"]
    monkeypatch.setattr(theorems, "fresh", lambda name: False)
    monkeypatch.setattr(verdicts, "fresh", lambda name: False)
    assert words(theorems=("situ.output_bound",)) == ["stale"]
    assert words(exact="kda.recurrent") == ["stale"]


def test_a_difference_is_no_agreement(monkeypatch):
    errors = {"float32": {"error": 1.0, "allowed": 1e-5}}
    found = {"exact": "DIFFERENT", "errors": errors, "says": ""}
    monkeypatch.setattr(verdicts, "verdict", lambda name: found)
    monkeypatch.setattr(verdicts, "fresh", lambda name: True)
    assert words(exact="kda.recurrent") == ["reported only"]


def test_a_badge_has_word_and_sign():
    shown = status.badge(status.Mark("proved", "level K; <all>"))
    assert "✓" in shown
    assert "proved level K" in shown
    assert "<all>" not in shown
