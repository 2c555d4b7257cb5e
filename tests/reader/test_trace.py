"""The record of the shipped model is of its present files, and of what it does."""

import json

import pytest

from k3.errors import RequestError
from k3.reader import trace, widgets
from k3.reader.widgets import widget as one


def test_the_record_is_of_the_model_in_the_package():
    assert trace.fresh(), trace.REBUILD


def test_a_record_of_another_model_is_stale(monkeypatch):
    monkeypatch.setattr(trace, "digest", lambda: "0" * 64)
    assert not trace.fresh()


def test_a_step_holds_states_rows_weights_and_choices():
    found = trace.record("A list")
    assert len(found["steps"]) == len(found["tokens"])
    last, kinds = found["steps"][-1], found["layers"]
    for kind, norm, rows in zip(kinds, last["memory"], last["cached"], strict=True):
        assert (norm > 0, rows) == (
            (True, 0) if kind == "KDA" else (False, len(found["tokens"]))
        )
    assert all(abs(sum(row) - 1) < 1e-12 for row in last["depth"])
    assert len(last["experts"]) == len(found["sparse"])
    assert len({sum(row) for row in last["experts"]}) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a trace needs a text: got nothing"),
        ("a" * 401, "at most 48 tokens and 400 characters: got 401 characters"),
        ("one two " * 40, "at most 48 tokens .* got .* tokens"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(text, words):
    with pytest.raises(RequestError, match=words):
        trace.record(text)


def test_the_widget_shows_what_is_kept():
    found = widgets.get("trace")
    assert one.tabulate(found)["[1]"] == trace.kept()["steps"][0]
    assert found.controls[0].high == len(trace.kept()["tokens"])
    assert trace.TEXT == trace.kept()["text"]
    assert json.dumps(trace.TEXT) in one.code(found)


def test_a_record_is_small():
    assert len(json.dumps(trace.kept())) < 60_000
