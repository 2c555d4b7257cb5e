"""Key lookup: each document has all keys, with values of its own."""

import pytest

from k3.envs import lookup

DOCUMENTS = {"A": {"bo": "ka"}, "B": {"bo": "lu"}}


def test_a_document_says_its_own_value():
    assert lookup.value(DOCUMENTS, {"document": "A", "key": "bo"}) == "ka"
    assert lookup.value(DOCUMENTS, {"document": "B", "key": "bo"}) == "lu"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"key": "bo"}, "takes document and key"),
        ({"document": "D", "key": "bo"}, "one of A, B"),
        ({"document": ["A"], "key": "bo"}, "one of A, B"),
        ({"document": "A", "key": "zu"}, "no such key"),
        ({"document": "A", "key": 3}, "no such key"),
    ],
)
def test_it_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        lookup.value(DOCUMENTS, arguments)


def test_the_other_documents_mislead():
    for index in range(30):
        question = lookup.make("train", index)
        others = [n for n in lookup.NAMES if n != question.needed["document"]]
        wrong = [question.run({**question.needed, "document": n}) for n in others]
        assert question.result not in wrong
        assert len(set(wrong)) == 2
