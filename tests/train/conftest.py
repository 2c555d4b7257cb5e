"""The toy recipe, and text that a model can learn by heart."""

import pytest
import toy

from k3.data import corpora


@pytest.fixture
def small():
    """5 layers, MLA at the last two; 300 ranks."""
    return toy.recipe()


@pytest.fixture
def text(monkeypatch):
    """Stand in for the standard library: one sentence, with numbers in it."""
    corpus = toy.corpus()
    monkeypatch.setattr(corpora, "stdlib", lambda: corpus)
    return corpus
