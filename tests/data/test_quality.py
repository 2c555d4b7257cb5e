"""Two filters, and any function beside them."""

import pytest

from k3.data import quality
from k3.data.corpora import Document

GOOD = "The assert statement is a way to insert checks into a program. " * 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD, None),
        ("Too short.", "fewer than 20 words"),
        ("1 + 2 = 3 ; " * 20, "less than 60% letters"),
        ("pneumonoultramicroscopic " * 20, "words of more than 12 characters"),
        ("Это предложение состоит из обычных русских слов. " * 3, None),
    ],
)
def test_prose_is_made_of_words(text, reason):
    assert quality.Prose()(text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\nb\nc\n\n\n\n", None),
        ("same line\nother\n" * 3, "more than 30% repeated lines"),
        ("", None),
    ],
)
def test_few_lines_stand_twice(text, reason):
    assert quality.Repetition()(text) == reason


def test_reasons_are_counted_and_the_first_one_counts():
    texts = [GOOD, "short", "short", GOOD + "no"]
    documents = [Document(name=str(n), text=text) for n, text in enumerate(texts)]
    filters = [quality.Prose(), lambda text: "says no" if text.endswith("no") else None]
    found = quality.judge(documents, filters)
    assert found.documents == (documents[0],)
    assert found.reasons == {"fewer than 20 words": 2, "says no": 1}
    assert quality.judge(documents, []).documents == tuple(documents)
