"""`k3 read --check` names what is wrong with a claim, and nothing is wrong."""

import pytest

from k3.reader import check, code, links, theorems, trace, verdicts
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


def test_the_whole_check_names_each_kind_of_wrong(monkeypatch):
    """One chapter with one claim, wrong in a way at a time; the rest is as it is."""
    monkeypatch.setattr(check, "uncovered", list)
    monkeypatch.setattr(check, "unset", list)
    monkeypatch.setattr(check, "untraced", list)
    monkeypatch.setattr(check.site, "site", dict)

    def found(**changes):
        parts = (Claim(**GOOD | changes),)
        made = Chapter(file="x.md", slug="x", title="T", summary="", parts=parts)
        monkeypatch.setattr(check, "chapters", lambda: (made,))
        return check.problems()

    assert found() == []
    assert "defines no 'updates'" in found(code=("k3.spec.kda:updates",))[0]
    assert "equation 7 is in no first line" in found(equation="7")[0]
    monkeypatch.setattr(check.site, "site", lambda: {"a.html": b'<a href="c.html">'})
    assert found() == ["a.html: the link c.html leads to no page or file"]
    monkeypatch.setattr(verdicts, "digest", lambda module: "0" * 64)
    assert "the verdict kda.recurrent is of older code" in found()[0]


def test_a_public_function_in_no_chapter_is_named(monkeypatch):
    shown = [c for c in check.chapters() if c.slug != "kda"]
    monkeypatch.setattr(check, "chapters", lambda: tuple(shown))
    assert "k3.spec.kda:gate is in no chapter; give it to a claim's code" in (
        check.uncovered()
    )


def test_a_formula_that_is_not_typeset_is_named(monkeypatch):
    monkeypatch.setattr(check.formulas, "typeset", dict)
    found = check.unset()
    assert len(found) > 400
    assert all("is not typeset; python tools/reader/formulas.py" in f for f in found)


def test_a_trace_of_another_model_is_named(monkeypatch):
    assert check.untraced() == []
    monkeypatch.setattr(trace, "digest", lambda: "0" * 64)
    (wrong,) = check.untraced()
    assert wrong.endswith("python tools/reader/trace.py")


def test_nothing_is_wrong_with_the_chapters():
    assert check.problems() == []
