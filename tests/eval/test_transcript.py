"""Transcripts: whatever is cut, whole answers stay; one run, one writer."""

import json

import pytest

from k3.errors import RequestError
from k3.eval import transcript
from k3.eval.transcript import Transcript

HEADER = {"protocol": {"name": "x", "shape": (1, 2)}, "facts": {"model": "a"}}


def record(index, sample=0):
    return {"index": index, "sample": sample, "answer": "ü"}


def test_wherever_a_kill_cuts_the_file_whole_answers_stay(tmp_path):
    file, header = tmp_path / "deep" / "x.jsonl", {"protocol": {}, "facts": {}}
    with Transcript(file, header) as kept:
        kept.append([record(0), record(1)])
    whole = file.read_bytes()
    for cut in range(len(whole) + 1):
        file.write_bytes(whole[:cut])
        complete = whole[: cut + 1].count(b"\n")
        with Transcript(file, header) as kept:
            assert kept.records == [record(i) for i in range(max(0, complete - 1))]
            kept.append([record(i) for i, _ in kept.missing(2, 1)])
        assert file.read_bytes() == whole


def test_what_is_missing_is_in_order_and_records_too():
    kept = Transcript(None, HEADER)
    kept.append([record(1, 1), record(0, 0)])
    assert kept.missing(2, 2) == [(0, 1), (1, 0)]
    assert kept.ordered() == [record(0, 0), record(1, 1)]


def test_another_run_is_refused_with_what_differs(tmp_path):
    file = tmp_path / "x.jsonl"
    Transcript(file, HEADER).close()
    other = {**HEADER, "facts": {"model": "b"}}
    with pytest.raises(RequestError, match=r"model \(model was a, is b\); choose ano"):
        Transcript(file, other)
    hot = {**HEADER, "protocol": {"name": "x", "shape": (1, 3)}}
    with pytest.raises(RequestError, match=r"shape was \[1, 2\], is \[1, 3\]"):
        Transcript(file, hot)
    # A refusal holds no lock.
    Transcript(file, HEADER).close()


def test_two_do_not_write_one_file(tmp_path):
    file = tmp_path / "x.jsonl"
    with (
        Transcript(file, HEADER),
        pytest.raises(RequestError, match="another process writes"),
    ):
        Transcript(file, HEADER)


def test_reading_needs_a_header(tmp_path):
    file = tmp_path / "x.jsonl"
    with Transcript(file, HEADER) as kept:
        kept.append([record(0)])
    header, records = transcript.read(file)
    assert header == json.loads(json.dumps(HEADER))
    assert records == [record(0)]
    file.write_text('{"index": 0}\n[]\nnonsense\n')
    with pytest.raises(RequestError, match="begins with its protocol"):
        transcript.read(file)
