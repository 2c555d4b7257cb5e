"""The toy recipe, and text that a model can learn by heart."""

import pytest
import toy

from k3.data import corpora
from k3.data.corpora import Corpus, Document

WORDS = "The assert statement is a way to insert debugging checks into a program. "


@pytest.fixture
def small():
    """5 layers, MLA at the last two; 300 ranks."""
    return toy.recipe()


@pytest.fixture
def text(monkeypatch):
    """Stand in for the standard library: one sentence, with numbers in it."""
    lines = [f"{WORDS}Line {i} of {i % 7} names {i * i}.\n" for i in range(120)]
    train = [
        Document(name=f"d{i}", text="".join(lines[i : i + 10]))
        for i in range(0, 100, 10)
    ]
    kept = [Document(name="kept", text="".join(lines[100:]))]
    corpus = Corpus(
        name="stdlib",
        source="sentences",
        licence="PSF-2.0",
        version="3.11.0",
        train=tuple(train),
        heldout=tuple(kept),
    )
    monkeypatch.setattr(corpora, "stdlib", lambda: corpus)
    return corpus
