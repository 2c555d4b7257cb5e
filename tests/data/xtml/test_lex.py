"""Markers in text and in tokens; pieces of tokens."""

import time

import pytest

from k3.data.xtml.lex import Broken, Cut, EndMark, Lexer, Pieces, Special, Tag


def items(*pieces, cut=False):
    lexer = Lexer()
    found = [item for piece in pieces for item in lexer.push(piece)]
    return [*found, *lexer.close(cut)]


def opened(name, separated=True):
    source = f"<|open|>{name}" + ("<|sep|>" if separated else "")
    return Tag(False, name, {}, separated, source)


def test_markers_are_found_in_text():
    assert items("a<|open|>think<|sep|>b<|end_of_msg|>") == [
        "a",
        opened("think"),
        "b",
        EndMark(),
    ]


def test_only_special_tokens_are_markers():
    spelled = [(part, False) for part in ("<|open|>", "think", "<|sep|>")]
    assert items(*spelled) == ["<|open|>", "think", "<|sep|>"]
    tokens = [("<|open|>", True), ("th", False), ("ink", False), ("<|sep|>", True)]
    assert items(*tokens) == [opened("think")]


def test_text_is_withheld_only_while_it_may_be_a_marker():
    lexer = Lexer()
    assert list(lexer.push("a < b <|o")) == ["a < b "]
    assert list(lexer.push("pen")) == []
    assert list(lexer.push("s <|sepia <")) == ["<|opens <|sepia "]
    assert list(lexer.close(cut=False)) == ["<"]


def test_a_token_releases_withheld_text():
    assert items("a<|op", ("en|>", False)) == ["a", "<|op", "en|>"]


def test_what_forms_no_tag_is_text():
    assert items("<|open|>a, b") == [Broken("<|open|>", "<|open|>a, b")]
    assert items("a<|sep|>") == ["a", Broken("<|sep|>", "<|sep|>")]
    assert items("<|open|><|close|>x<|sep|>")[0] == Broken("<|open|>", "<|open|>")


def test_a_missing_separator():
    assert items("<|open|>think<|end_of_msg|>") == [opened("think", False), EndMark()]
    assert items("<|open|>think") == [opened("think", False)]
    assert items("<|close|>think", cut=True)[0].closing


@pytest.mark.parametrize("text", ["<|open|>", "<|open|>think", "<|close|>thi"])
def test_a_cut_tag(text):
    assert items(text, cut=True) == [Cut(text)]


def test_other_special_tokens():
    assert items(("[EOS]", True)) == [Special("[EOS]")]
    assert items(("<|open|>", True), ("<|media_pad|>", True)) == [
        Broken("<|open|>", "<|open|>"),
        Special("<|media_pad|>"),
    ]


def test_pieces_of_tokens_hold_whole_characters(byte_tokenizer):
    pieces = Pieces(byte_tokenizer)
    ids = byte_tokenizer.encode("é")
    assert pieces.push(ids[0]) == []
    assert pieces.push(ids[1]) == [("é", False)]
    pieces.push(ids[0])
    special = byte_tokenizer.special_id("<|sep|>")
    assert pieces.push(special) == [("�", False), ("<|sep|>", True)]
    pieces.push(ids[0])
    assert pieces.flush() == [("�", False)]
    assert pieces.flush() == []


@pytest.mark.parametrize("unit", ["a", " ", "<", "<|", "<|open|>", "<|open|>call "])
def test_time_is_linear(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        lexer = Lexer()
        start = time.process_time()
        for place in range(0, len(text), 3):
            list(lexer.push(text[place : place + 3]))
        return time.process_time() - start

    seconds(1_000)
    once = min(seconds(6_000) for _ in range(2))
    assert min(seconds(24_000) for _ in range(2)) < 4 * once * 2.5
