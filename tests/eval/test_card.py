"""The card's table of tasks: put once, changed in place."""

import shutil

from k3.checkpoint import locate
from k3.eval import card, figures
from k3.eval.protocol import PROTOCOLS
from k3.eval.run import Result

CARD = "# tiny\n\nWords.\n\n## Held-out text\n\n1\n\n## Data\n\n2\n"


def result(value):
    figure = figures.Figure(name="right", count=4, value=value, low=0.1, high=0.9)
    return Result(protocol=PROTOCOLS["recall"], figures=(figure,), records=())


def test_a_table_stands_before_the_data_and_is_changed_in_place():
    once = card.put(CARD, card.table([result(0.5)]))
    assert "| recall | right | 4 | 0.500 | 0.100 to 0.900 |" in once
    titles = [line for line in once.splitlines() if line.startswith("## ")]
    assert titles == ["## Held-out text", card.TITLE, "## Data"]
    twice = card.put(once, card.table([result(0.75)]))
    assert twice == once.replace("0.500", "0.750")


def test_a_card_without_data_gets_the_table_at_its_end():
    once = card.put("# x\n", card.table([result(0.5)]))
    assert once.startswith("# x\n\n## Held-out tasks")
    assert card.put(once, card.table([result(0.5)])) == once


def test_a_checkpoint_without_measured_tasks_keeps_its_card(tmp_path):
    assert card.complete(tmp_path, ["text", "copy"]) == []


def test_a_checkpoint_is_measured_and_its_card_says_so(tmp_path, monkeypatch):
    folder = tmp_path / "tiny"
    shutil.copytree(locate.locate("tiny"), folder)
    short = PROTOCOLS["recall"].__class__(
        name="recall", task="recall", count=3, max_tokens=1
    )
    monkeypatch.setitem(PROTOCOLS, "recall", short)
    (found,) = card.complete(folder, ["text", "recall"])
    assert found.score.count == 3
    assert "| recall | right | 3 |" in (folder / "README.md").read_text()
