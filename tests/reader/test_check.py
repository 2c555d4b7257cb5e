"""`k3 read --check` names what is wrong with a claim, and nothing is wrong."""

import pytest

from k3.reader import check, code, links, theorems, verdicts
from k3.reader.chapter import Chapter, Claim, Prose

GOOD = {
    "id": "a-claim",
    "section": "2.1.1",
    "text": "words",
    "equation": "1",
    "code": ("k3.spec.kda:update",),
    "theorems": ("kda.matrix_form_in_coordinates",),
    "exact": "kda.recurrent",
    "graph": "kda_update",
}


def wrong(**changes):
    return list(check.of_claim(Claim(**GOOD | changes)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": "A claim"}, "an id is lower-case words"),
        ({"code": ("k3.spec.kda:updates",)}, "defines no 'updates'"),
        ({"runs": ("k3.kernels.none:f",)}, "there is no such module"),
        ({"equation": "7"}, "equation 7 is in no first line"),
        ({"theorems": ("kda.none",)}, "a theorem must be one of k3 prove"),
        ({"exact": "none"}, "exact must be a name of k3/reader/verdicts.json"),
        ({"graph": "none"}, "no graph is called none"),
        ({"widget": "none"}, "no widget is called none"),
    ],
)
def test_a_wrong_claim_is_named(changes, words):
    assert any(words in each for each in wrong(**changes))


def test_a_stale_receipt_and_a_stale_verdict_are_named(monkeypatch):
    monkeypatch.setattr(theorems, "fresh", lambda name: False)
    monkeypatch.setattr(verdicts, "fresh", lambda name: False)
    found = wrong()
    assert any("the receipt of kda.matrix" in each for each in found)
    assert any("the verdict kda.recurrent is of older code" in each for each in found)


def test_a_chapters_numbers_and_anchors_are_checked():
    claim = Claim(**GOOD)
    parts = (claim, claim, Prose(text="{= 1 / 0 =}"))
    made = Chapter(file="x.md", slug="x", title="T", summary="", parts=parts)
    found = check.of_chapter(made)
    assert any("two claims are called a-claim" in each for each in found)
    assert any("ZeroDivisionError" in each for each in found)


@pytest.mark.parametrize(
    ("docstring", "numbers"),
    [
        ("Eq. 1 (§2): x", {"1"}),
        ("Eq. 3-5, and Eq. 12 and 18: x", {"3", "4", "5", "12", "18"}),
        ("No number.\n\nEq. 9 below", set()),
    ],
)
def test_equations_of_a_docstring(docstring, numbers):
    assert code.equations(docstring) == numbers


def test_dead_links_are_found():
    page = b'<a href="b.html#x">1</a> <a href="c.html">2</a> <a href="http://d">3</a>'
    found = links.dead({"a.html": page, "b.html": b'<p id="y">'})
    assert found == [
        "a.html: the link b.html#x leads to no anchor of that page",
        "a.html: the link c.html leads to no page or file",
        "a.html: the link http://d is neither relative nor https",
    ]


def test_nothing_is_wrong_with_the_chapters():
    assert check.problems() == []
