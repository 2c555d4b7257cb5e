"""A library finds pages by words and lines by what begins on them."""

import pytest

from k3.data.corpora.document import Document
from k3.envs.documents.library import Library


@pytest.fixture(scope="module")
def library():
    long = "\n".join(f"line {n} of the long one" for n in range(1, 100))
    made = Library(
        [
            Document(name="a", text="The kado lives\nby the river.\n\nIt sleeps."),
            Document(name="b", text="A river is wet; a lake is not a river."),
            Document(name="long", text=long.replace("line 77", "the kado at 77")),
            Document(name="empty", text=""),
        ]
    )
    yield made
    made.close()


def test_pages_are_ranked_and_begin_at_their_lines(library):
    assert [hit.name for hit in library.search("river rivers")] == ["b", "a"]
    assert [(h.name, h.line) for h in library.search("77")] == [("long", 41)]
    assert "kado at 77" in library.search("77")[0].snippet
    assert len(library.search("line", most=2)) == 2


@pytest.mark.parametrize(
    "query", ["", "?!", '"', '""', 'x" OR "y', "AND", "NEAR(a b)", "a*", "col:x", "\0"]
)
def test_a_query_is_words_and_no_language(library, query):
    for hit in library.search(query):
        assert hit.name in library.lines


def test_words_in_quotes_stand_together(library):
    assert [h.name for h in library.search('"lives by the river"')] == ["a"]
    assert library.search('"river the by"') == []
    assert [h.name for h in library.search('"a river" "a lake" nothing')] == ["b"]


def test_words_are_found_across_lines(library):
    assert library.find("a", "lives by  the\triver. It") == [1]
    assert library.find("a", "river.") == [2]
    assert library.find("a", "It sleeps.") == [4]
    assert library.find("a", "It sleeps") == [4]
    assert library.find("a", "sleeps It") == []
    assert library.find("a", " ") == []
    assert library.find("empty", "x") == []
    assert len(library.find("long", "line")) == 20
