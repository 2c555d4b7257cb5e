"""Which documents repeat another one."""

import pytest

from k3.data import dedup
from k3.data.corpora import Document
from k3.errors import RequestError


def document(name, text):
    return Document(name=name, text=text)


def numbered(first, last):
    return " ".join(f"w{n}" for n in range(first, last))


def names(kept):
    return [d.name for d in kept.documents]


def test_case_and_spaces_do_not_make_a_text_new():
    texts = [
        document("a", "One two"),
        document("b", "one\n TWO "),
        document("c", "one"),
    ]
    kept = dedup.exact(texts)
    assert names(kept) == ["a", "c"]
    assert kept.repeats == (("b", "a"),)


def test_equal_names_are_no_reason_to_stay():
    kept = dedup.exact([document("a", "x"), document("a", "x")])
    assert len(kept.documents) == 1


def test_shingles_are_runs_of_five_words():
    assert list(dedup.shingles("A b  c D e f")) == [b"a b c d e", b"b c d e f"]
    assert list(dedup.shingles("a b")) == [b"a b"]
    assert list(dedup.shingles("")) == [b""]


@pytest.mark.parametrize(("common", "stays"), [(95, False), (90, False), (80, True)])
def test_a_similarity_on_either_side_of_the_threshold(common, stays):
    """`common` shared runs of 100 in each: J = common / (200 - common)."""
    a = document("a", numbered(0, 104))
    b = document("b", numbered(100 - common, 204 - common))
    kept = dedup.near([a, b], 0.8)
    assert (names(kept) == ["a", "b"]) == stays
    assert kept.repeats == (() if stays else (("b", "a"),))


def test_a_small_change_in_a_long_text_is_found():
    text = numbered(0, 400)
    edited = text.replace("w200 ", "changed ")
    other = [document(f"o{n}", numbered(1000 * n, 1000 * n + 90)) for n in range(1, 30)]
    kept = dedup.near([document("a", text), *other, document("b", edited)])
    assert kept.repeats == (("b", "a"),)
    assert len(kept.documents) == 30


def test_what_repeats_a_document_that_left_stays():
    """Like b, which is out; not like a, which is in: nothing says it twice."""
    a, b, c = (document(n, numbered(8 * i, 8 * i + 104)) for i, n in enumerate("abc"))
    assert names(dedup.near([a, b, c], 0.8)) == ["a", "c"]


def test_what_repeats_a_held_out_document_is_not_trained_on():
    a, b = document("a", numbered(0, 104)), document("b", numbered(500, 604))
    kept = dedup.near([b, a], against=[document("kept", numbered(1, 105))])
    assert names(kept) == ["b"]
    assert kept.repeats == (("a", "kept"),)


def test_nothing_repeats_nothing():
    assert dedup.near([]).documents == ()
    assert dedup.exact([]).repeats == ()


@pytest.mark.parametrize("threshold", [0, 1.1, float("nan")])
def test_a_similarity_that_is_none_is_refused(threshold):
    with pytest.raises(RequestError, match="above 0 and at most 1"):
        dedup.near([], threshold)
