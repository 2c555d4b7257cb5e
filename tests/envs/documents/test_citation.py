"""Citations: the form, and every way in which one may not hold."""

import pytest

from k3.data.corpora.document import Document
from k3.envs.documents import citation
from k3.envs.documents.library import Library
from k3.envs.documents.reader import Reader

SAID = "kado lives in mipo."
DOCUMENTS = [
    Document(name="a", text=f"Long ago\n{SAID} It rains."),
    Document(name="b", text=f"Some say that {SAID}\nOthers do not."),
    Document(name="c", text="mipo is wet. " * 60 + SAID),
]


def holds(written, opened=("a",)):
    reader = Reader(Library(DOCUMENTS))
    for name in opened:
        reader.open(name)
    return citation.holds(written, "mipo", (SAID,), reader)


@pytest.mark.parametrize(
    "written",
    [
        f"mipo\n[a] {SAID}",
        f'mipo\n\n  [ a ]   "{SAID}"  ',
        f"mipo\n[a] ago {SAID} It rains.",
        f"mipo\n[a] It rains.\n[a] {SAID}",
    ],
)
def test_it_holds(written):
    assert holds(written)


@pytest.mark.parametrize(
    ("written", "opened"),
    [
        ("mipo", ("a",)),
        (f"zoro\n[a] {SAID}", ("a",)),
        (f"mipo or zoro\n[a] {SAID}", ("a",)),
        (f"mipo\n[a] {SAID}", ()),
        (f"mipo\n[b] {SAID}", ("a",)),
        (f"mipo\n[x] {SAID}", ("a",)),
        ("mipo\n[a] It rains.", ("a",)),
        ("mipo\n[a] mipo", ("a",)),
        ("mipo\n[a] the answer is: kado lives in mipo.", ("a",)),
        (f"mipo\n[a] {SAID}\n[a] I made this up.", ("a",)),
        (f"mipo\n[c] {DOCUMENTS[2].text}", ("c",)),
        (f"mipo\n{SAID} (a)", ("a",)),
        ("mipo\n" + f"[a] {SAID}\n" * 4, ("a",)),
        ("", ("a",)),
        (f"[a] {SAID}", ("a",)),
        ("mipo\n[a] ", ("a",)),
    ],
)
def test_it_does_not_hold(written, opened):
    assert not holds(written, opened)


def test_what_is_written_is_read_back():
    written = citation.write("mipo", [("a", "x\n y"), ("b c", '"z" and "w"')])
    found = citation.read(written)
    assert found.answer == "mipo"
    assert found.citations == (("a", "x y"), ("b c", 'z" and "w'))
