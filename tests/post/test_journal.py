"""The journal of a run: whole lines alone, samples to the last bit."""

import errno
import json
import os

import pytest

from k3.errors import CheckpointError
from k3.post import journal
from k3.post.journal import Journal
from k3.train.trajectory import Piece, Trajectory


class Talk:
    """An episode that keeps messages."""

    def __init__(self):
        self.messages = [{"role": "user", "content": "hé"}]

    def begin(self):
        return [1]

    def reply(self, written):
        return None

    def reward(self):
        return 0.5


def sample():
    one = Trajectory("0:t:1:0", "0:t:1", Talk(), iterations=2, reward=0.1 + 0.2)
    one.hear([5, 6])
    one.write(Piece("", (7, 8), (-0.1, -1e-30), False), 3)
    one.write(Piece("", (9,), (-1 / 3,), True), 4)
    one.hear([10])
    one.write(Piece("", (11,), (0.0,), True), 4)
    return one


def test_a_sample_comes_back_as_it_was(tmp_path):
    path, one = tmp_path / "j", sample()
    with Journal(path) as log:
        log.append(journal.finished(one), journal.learned(3, [([one], [0.1 + 0.2])]))
    first, second = journal.read(path)
    back = Trajectory("0:t:1:0", "0:t:1", Talk())
    back.episode.messages = []
    journal.restore_(back, first)
    for name in ("tokens", "written", "logprobs", "versions", "iterations", "reward"):
        assert getattr(back, name) == getattr(one, name)
    assert back.episode.messages == one.episode.messages
    assert second == {
        "kind": "learned",
        "iteration": 3,
        "groups": ["0:t:1"],
        "rewards": [[0.1 + 0.2]],
    }


def test_any_cut_leaves_the_whole_lines(tmp_path):
    path = tmp_path / "j"
    with Journal(path) as log:
        log.append(journal.finished(sample()))
        log.append(journal.learned(1, []))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in {
        *range(0, len(whole), 19),
        first - 1,
        first,
        len(whole) - 1,
        len(whole),
    }:
        path.write_bytes(whole[:size])
        count = 2 if size == len(whole) else 1 if size >= first else 0
        assert len(list(journal.read(path))) == count
        with Journal(path) as log:
            log.append(journal.learned(7, []))
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert len(lines) == count + 1
        assert lines[-1]["iteration"] == 7


def test_a_torn_line_longer_than_a_block_is_cut(tmp_path):
    path = tmp_path / "j"
    good = b'{"kind": "learned"}\n'
    path.write_bytes(good + b"x" * (3 * journal.BLOCK_BYTES))
    with Journal(path):
        pass
    assert path.read_bytes() == good
    path.write_bytes(b"x" * (2 * journal.BLOCK_BYTES))
    with Journal(path):
        pass
    assert path.read_bytes() == b""


def test_no_file_is_no_line(tmp_path):
    assert list(journal.read(tmp_path / "none")) == []


@pytest.mark.parametrize("line", ["{", "[]", "3", '{"x": 1}', "[" * 100_000])
def test_a_line_that_is_none_is_refused(tmp_path, line):
    path = tmp_path / "j"
    path.write_text(line + "\n")
    with pytest.raises(CheckpointError, match="line 1 of"):
        list(journal.read(path))


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path / "j") as log, monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match=r"No space left.*then resume"):
            log.append(journal.learned(1, []))
