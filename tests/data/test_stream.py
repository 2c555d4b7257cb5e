"""A token at a time: never half a character, never a lost one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError

BYTES = {bytes([byte]): byte for byte in range(256)}


def _deltas(tokenizer, ids):
    stream = tokenizer.stream()
    return [*(stream.push(i) for i in ids), stream.flush()]


def _split(*tokens):
    """A tokenizer that has these tokens, and their ids."""
    ranks = dict(BYTES)
    for token in tokens:
        ranks.setdefault(token, len(ranks))
    return Tokenizer(ranks), [ranks[token] for token in tokens]


@pytest.mark.parametrize(
    ("tokens", "deltas"),
    [
        ([b"\xf0\x9f", b"\x98\x80"], ["", "😀", ""]),
        ([b"\xe2", b"\x82", b"\xac"], ["", "", "€", ""]),
        ([b"a", b"b c", b"d"], ["a", "b c", "d", ""]),
        ([b"x\xe2", b"\x82", b"\xacy"], ["x", "", "€y", ""]),
        ([b"a", b"\x80", b"b"], ["a", "�", "b", ""]),
        ([b"\xe2\x82", b"a"], ["", "�a", ""]),
        ([b"a\xf0\x9f\x98"], ["a", "�"]),
        ([b"\xc3", b"\xc3", b"\xa9"], ["", "�", "é", ""]),
        ([b"\xc0", b"\xaf"], ["�", "�", ""]),
        ([b"\xed", b"\xa0", b"\x80", b"a"], ["", "", "���", "a", ""]),
        ([b"\xf4", b"\x90"], ["", "��", ""]),
    ],
)
def test_report_17_characters_split_across_tokens(tokens, deltas):
    tokenizer, ids = _split(*tokens)
    assert _deltas(tokenizer, ids) == deltas
    assert "".join(deltas) == b"".join(tokens).decode("utf-8", "replace")


def test_report_17_ten_thousand_random_sequences(tokenizer):
    rng = random.Random(17)
    for _ in range(10_000):
        ids = rng.choices(range(tokenizer.vocab_size), k=rng.randrange(12))
        assert "".join(_deltas(tokenizer, ids)) == tokenizer.decode(ids)


@given(st.lists(st.integers(0, 255), max_size=12))
def test_report_17_any_bytes_give_the_marks_of_the_whole(ids):
    whole = bytes(ids).decode("utf-8", "replace")
    assert "".join(_deltas(Tokenizer(BYTES), ids)) == whole


@given(st.text(max_size=20))
def test_every_character_arrives_with_its_last_byte(text):
    stream = Tokenizer(BYTES).stream()
    for character in text.encode("utf-8", "replace").decode():
        *early, last = [stream.push(byte) for byte in character.encode()]
        assert not any(early)
        assert last == character
    assert stream.flush() == ""


def test_flush_happens_once(byte_tokenizer):
    stream = byte_tokenizer.stream()
    assert stream.push(0xE2) == ""
    assert stream.flush() == "�"
    assert stream.flush() == ""
    assert stream.push(ord("a")) == "a"


def test_skipped_specials_leave_no_trace(byte_tokenizer):
    end = byte_tokenizer.special_id("<|end_of_msg|>")
    shown, hidden = byte_tokenizer.stream(), byte_tokenizer.stream(skip_special=True)
    assert shown.push(end) == "<|end_of_msg|>"
    assert hidden.push(end) == ""


def test_an_id_outside_the_vocabulary_is_refused(byte_tokenizer):
    with pytest.raises(RequestError, match="must be 0 to 511: got 512"):
        byte_tokenizer.stream().push(512)
