"""Debian's files as documents, below a root of a few invented ones."""

import gzip
import os

import pytest

from k3.data.corpora import debian
from k3.errors import RequestError

BIBLE = """#!/bin/sh
test "$1 $3 $4" = "-p -f gen1:1-rev22:21" && test -z "$COLUMNS" && cat "$2/bible.data"
"""


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", "/bin"]))
    monkeypatch.setenv("COLUMNS", "40")
    return tmp_path


def documents(corpus):
    return {d.name: d.text for d in (*corpus.train, *corpus.heldout)}


def changelog(root, package, version):
    put(root / f"usr/share/doc/{package}/changelog.Debian.gz", f"x ({version}) y\nz")


def test_a_chapter_of_the_bible_is_a_document(root):
    put(root / "usr/bin/bible", BIBLE)
    (root / "usr/bin/bible").chmod(0o755)
    text = "Ge1:1 In the\nGe1:2 And: 7\nGe2:1 Thus\n1Sam1:1 Now\n"
    put(root / "usr/lib/bible.data", text)
    changelog(root, "bible-kjv-text", "4.38")
    corpus = debian.kjv(root)
    assert documents(corpus) == {
        "kjv:Ge1": "In the\nAnd: 7",
        "kjv:Ge2": "Thus",
        "kjv:1Sam1": "Now",
    }
    assert (corpus.version, corpus.name) == ("4.38", "kjv")


@pytest.mark.parametrize("output", ["", "Ge1:1 In the\nno verse\n"])
def test_a_program_that_prints_no_verses_is_refused(root, output):
    put(root / "usr/bin/bible", BIBLE)
    (root / "usr/bin/bible").chmod(0o755)
    put(root / "usr/lib/bible.data", output)
    with pytest.raises(RequestError, match="must print verses"):
        debian.kjv(root)


def test_manuals_are_their_files_of_the_newest_version(root):
    for minor in (11, 12):
        folder = root / f"usr/share/doc/python3.{minor}/html/_sources"
        put(folder / "b/c.rst.txt", f"c{minor}")
        put(folder / "a.rst.txt", "  \n")
    put(root / "usr/share/doc/linux-doc-6.1/Documentation/x/y.rst.gz", "kernel é")
    changelog(root, "linux-doc-6.1", "6.1.192-3")
    assert documents(debian.python_doc(root)) == {"python-doc:b/c.rst.txt": "c12"}
    linux = debian.linux_doc(root)
    assert documents(linux) == {"linux-doc:x/y.rst.gz": "kernel é"}
    assert linux.version == "6.1.192-3"
    assert debian.python_doc(root).version == "unknown"


def test_words_stand_together_by_their_first_letter(root):
    put(root / "usr/share/dict/american-english", "Bob\nApt\nbe\nÅngström\napt's\n")
    assert documents(debian.wamerican(root)) == {
        "wamerican:a": "Apt\napt's",
        "wamerican:b": "Bob\nbe",
        "wamerican:å": "Ångström",
    }


def test_papers_stand_beside_the_words(root):
    put(root / "usr/share/dict/web2", "A\na\n")
    put(root / "usr/share/state/us-declaration.gz", "When in the Course")
    assert documents(debian.miscfiles(root)) == {
        "miscfiles:a": "A\na",
        "miscfiles:us-declaration": "When in the Course",
    }


@pytest.mark.parametrize(
    ("load", "packages"),
    [
        (debian.kjv, "bible-kjv bible-kjv-text"),
        (debian.python_doc, "python3-doc"),
        (debian.linux_doc, "linux-doc"),
        (debian.wamerican, "wamerican"),
        (debian.miscfiles, "miscfiles"),
    ],
)
def test_what_is_not_installed_names_its_package(root, load, packages):
    with pytest.raises(RequestError, match=f"; apt install {packages}$"):
        load(root)
