"""What was opened is known line by line, and mistakes are sentences."""

import pytest

from k3.data.corpora.document import Document
from k3.envs.documents.library import PAGE_LINES, Library
from k3.envs.documents.reader import Reader

TEXT = "\n".join(f"word{n} and\nmore{n}" for n in range(60))


@pytest.fixture
def reader():
    return Reader(Library([Document(name="d", text=TEXT)]))


def test_only_what_was_opened_was_opened(reader):
    assert not reader.has_opened("d", "word0")
    reader.search("word0")
    reader.find("d", "word0")
    assert not reader.has_opened("d", "word0")
    page = reader.open("d")
    assert page.splitlines()[0] == f"d, lines 1 to {PAGE_LINES} of 120"
    assert reader.has_opened("d", "word0 and more0\nword1")
    assert not reader.has_opened("d", "word30")
    reader.open("d", 61)
    assert reader.has_opened("d", "word30 and more30")


def test_a_quote_does_not_jump_over_lines_that_were_not_opened(reader):
    reader.open("d", 1)
    reader.open("d", 60)
    assert reader.has_opened("d", "more19")
    assert reader.has_opened("d", "more29")
    assert not reader.has_opened("d", "more19 more29")
    assert not reader.has_opened("d", "more19 \0 more29")
    assert not reader.has_opened("d", "\0")
    assert not reader.has_opened("d", "  ")
    assert not reader.has_opened("other", "more19")


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda r: r.open("x"), "Error: there is no document 'x'"),
        (lambda r: r.find("x", "y"), "Error: there is no document 'x'"),
        (lambda r: r.open("d", 0), "Error: d has the lines 1 to 120: got 0."),
        (lambda r: r.open("d", 121), "Error: d has the lines 1 to 120: got 121."),
        (lambda r: r.find("d", "zzz"), "d does not have these words."),
        (lambda r: r.search("zzz"), "Nothing matches."),
    ],
)
def test_what_is_not_there_is_a_sentence(reader, act, sentence):
    assert act(reader).startswith(sentence)


def test_an_empty_document_can_be_opened():
    reader = Reader(Library([Document(name="e", text="")]))
    assert reader.open("e") == "e, lines 1 to 0 of 0"
    assert not reader.has_opened("e", "")
