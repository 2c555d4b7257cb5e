"""The corpus of the running Python, whatever its version."""

import platform

import pytest

from k3.data import corpora
from k3.data.corpora import Corpus, Document, document, python

SOURCE = b'''
"""Module."""

class A:
    """Class A.

        indented
    at the margin
    """

    def f(self):
        """Method f."""

    async def g(self): pass

def f():
    """   """
'''


@pytest.fixture(scope="module")
def corpus():
    return corpora.stdlib()


def paragraphs(documents):
    found = (" ".join(p.split()) for d in documents for p in d.text.split("\n\n"))
    return [p for p in found if len(p.encode()) >= document.PARAGRAPH_MIN_BYTES]


def test_docstrings_come_in_source_order_cleaned():
    want = ["Module.", "Class A.\n\n    indented\nat the margin", "Method f."]
    assert python.docstrings(SOURCE) == want


def test_stdlib_is_two_megabytes_of_named_documents(corpus):
    names = [d.name for d in (*corpus.train, *corpus.heldout)]
    assert len(names) == len(set(names)) > 300
    assert {name.split(":")[0] for name in names} == {"topic", "module"}
    assert 1_000_000 < sum(d.num_bytes for d in corpus.train) < 4_000_000
    assert corpus.version == platform.python_version()
    assert corpus.licence == "PSF-2.0"
    assert not any("/test/" in f"/{name}" or "idlelib" in name for name in names)


def test_heldout_is_a_small_part_chosen_by_name(corpus):
    kept, used = (sum(d.num_bytes for d in p) for p in (corpus.heldout, corpus.train))
    assert 0.03 < kept / (kept + used) < 0.12
    assert all(corpora.is_heldout(d.name) for d in corpus.heldout)
    assert not any(corpora.is_heldout(d.name) for d in corpus.train)


def test_no_paragraph_stands_twice_so_heldout_text_is_unseen(corpus):
    found = paragraphs((*corpus.train, *corpus.heldout))
    assert len(found) == len(set(found))


def test_order_is_that_of_names_so_the_same_python_gives_the_same_corpus(corpus):
    for documents in (corpus.train, corpus.heldout):
        topics = [d.name for d in documents if d.name.startswith("topic:")]
        modules = [d.name.split("/") for d in documents[len(topics) :]]
        assert topics == sorted(topics)
        assert modules == sorted(modules)


def test_hash_sees_text_names_and_the_border():
    def made(*train, heldout=()):
        return Corpus(
            name="c",
            source="s",
            licence="l",
            version="1",
            train=train,
            heldout=heldout,
        ).sha256

    a, b = Document(name="a", text="x"), Document(name="b", text="y")
    hashes = {made(a, b), made(b, a), made(Document(name="ab", text="xy")), made(a)}
    assert len(hashes) == 4


def test_join_is_utf8():
    documents = [Document(name="a", text="é"), Document(name="b", text="z")]
    assert corpora.join(documents) == "é\n\nz".encode()
    assert documents[0].num_bytes == 2


def test_code_is_whole_files_of_the_library():
    corpus = python.code()
    found = {d.name: d.text for d in (*corpus.train, *corpus.heldout)}
    assert "class TextWrapper" in found["code:textwrap.py"]
    assert not any("/test/" in name for name in found)
