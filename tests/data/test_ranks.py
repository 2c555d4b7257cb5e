"""The ranks file: read, written, and refused with a sentence."""

import base64

import pytest

from k3.data import ranks
from k3.errors import CheckpointError

BYTES = {bytes([byte]): byte for byte in range(256)}


def _write(path, lines):
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _lines(table):
    return [base64.b64encode(token) + b" %d" % rank for token, rank in table.items()]


def test_round_trip_is_byte_identical(tmp_path):
    table = BYTES | {b"ab": 256, b" the": 257}
    ranks.write(table, tmp_path / "a")
    again = ranks.read(tmp_path / "a")
    assert again == table
    ranks.write(again, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_the_order_of_lines_does_not_matter(tmp_path):
    path = _write(tmp_path / "tiktoken.model", reversed(_lines(BYTES)))
    assert ranks.read(path) == BYTES


@pytest.mark.parametrize(
    "line",
    [b"garbled", b"", b"YWI=", b"YWI= x", b"YWI= -1", b"YWI= 1 2", b"YW!= 9", b" 3"],
)
def test_a_garbled_line_is_named(tmp_path, line):
    lines = _lines(BYTES)
    lines.insert(6, line)
    path = _write(tmp_path / "tiktoken.model", lines)
    with pytest.raises(CheckpointError, match=r"'base64 rank': tiktoken.model line 7 "):
        ranks.read(path)


def test_a_duplicate_rank_is_refused(tmp_path):
    path = _write(tmp_path / "tiktoken.model", _lines(BYTES | {b"ab": 7}))
    with pytest.raises(CheckpointError, match="gives rank 7 again, to b'ab'"):
        ranks.read(path)


def test_a_duplicate_token_is_refused(tmp_path):
    path = _write(tmp_path / "tiktoken.model", [*_lines(BYTES), b"YQ== 256"])
    with pytest.raises(CheckpointError, match="line 257 repeats b'a' of rank 97"):
        ranks.read(path)


def test_a_gap_is_refused(tmp_path):
    path = _write(tmp_path / "tiktoken.model", _lines(BYTES | {b"ab": 257}))
    with pytest.raises(CheckpointError, match="257 tokens but no rank 256"):
        ranks.read(path)


def test_missing_single_bytes_are_refused(tmp_path):
    table = {bytes([byte]): byte for byte in range(0xF0)}
    path = _write(tmp_path / "tiktoken.model", _lines(table))
    with pytest.raises(CheckpointError, match="misses 16, the first is 0xf0"):
        ranks.read(path)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"tiktoken.model is absent"):
        ranks.read(tmp_path / "tiktoken.model")
