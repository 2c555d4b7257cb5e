"""One snapshot at a time, of the moment in which it was asked for."""

import threading

import pytest
import torch

from k3.errors import CheckpointError
from k3.train import snapshot
from k3.train.writer import Writer


def test_what_changes_afterwards_is_not_in_it(tmp_path, monkeypatch):
    go, write = threading.Event(), snapshot.write

    def later(*values):
        go.wait(60)
        write(*values)

    monkeypatch.setattr(snapshot, "write", later)
    weight, facts = torch.ones(3), {"step": 1, "losses": {"text": [1.0]}}
    with Writer(tmp_path, 2) as writer:
        writer.begin({"a": weight}, facts)
        weight.zero_()
        facts["losses"]["text"][0] = 9.0
        go.set()
    tensors, told = snapshot.read(tmp_path)
    assert tensors["a"].tolist() == [1, 1, 1]
    assert told == {"step": 1, "losses": {"text": [1.0]}}


def test_at_most_one_is_on_its_way_and_so_many_are_kept(tmp_path, monkeypatch):
    busy, write, order = threading.Lock(), snapshot.write, []

    def alone(*values):
        assert busy.acquire(blocking=False)
        write(*values)
        order.append(values[2]["step"])
        busy.release()

    monkeypatch.setattr(snapshot, "write", alone)
    with Writer(tmp_path, 2) as writer:
        for step in range(5):
            writer.begin({"a": torch.ones(3)}, {"step": step})
    assert order == [0, 1, 2, 3, 4]
    assert [snapshot.read_file(p)[1]["step"] for p in snapshot.kept(tmp_path)] == [4, 3]


def leave(writer):
    with writer:
        pass


AFTERWARDS = {
    "begin": lambda writer: writer.begin({}, {"step": 2}),
    "wait": Writer.wait,
    "exit": leave,
}


@pytest.mark.parametrize("how", AFTERWARDS)
def test_a_snapshot_that_cannot_be_written_is_told(tmp_path, how):
    gone = tmp_path / "gone"
    writer = Writer(gone, 2)
    writer.begin({}, {"step": 1})
    with pytest.raises(
        CheckpointError, match=r"must be written to .*gone: got .*No su"
    ):
        AFTERWARDS[how](writer)
    with writer:
        writer.wait()
