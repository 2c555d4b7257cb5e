"""Names of a mixture, what they give, and what the vocabulary is learned from."""

import pytest
import toy

from k3.data import bpe, tasks
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.train import sources


@pytest.fixture(scope="module")
def tokenizer():
    texts = sources.texts(["text", "sums"], toy.corpus())
    return Tokenizer(bpe.train(texts, 300))


def test_every_task_is_a_source_beside_the_text():
    assert list(sources.SOURCES) == ["text", *tasks.DRAWS]


def test_rows_of_any_length_hold_what_was_named(tokenizer):
    shares = (("text", 0.5), ("sums", 0.5))
    rows = sources.mixture(shares, toy.corpus(), tokenizer, seed=3)
    short, long = rows(150), rows(400)
    assert short.domains == long.domains == ("text", "sums")
    assert [len(short.row(0)), len(long.row(0))] == [150, 400]
    found = {int(short.row(n).domains[0, 0]) for n in range(4)}
    assert found == {0, 1}


def test_an_unknown_name_is_refused_with_those_that_are_known(tokenizer):
    with pytest.raises(
        RequestError, match=r"made of text, .*sums.*: got 'sum'; choose"
    ):
        sources.mixture((("sum", 1.0),), toy.corpus(), tokenizer, 0)


def test_the_vocabulary_sees_the_tasks_that_are_named():
    corpus = toy.corpus()
    plain = sources.texts(["text"], corpus)
    assert plain == [document.text for document in corpus.train]
    assert len(sources.texts(["text", "sums"], corpus)) > len(plain)
