"""What the documents of serving name is there: commands, options, tests, reports."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from k3.cli.app import app

ROOT = Path(__file__).parents[3]
DOCUMENTS = ("serving.md", "scale.md", "state-and-caches.md", "limits.md")
# The cases that /docs/serving.md and its neighbours answer for.
REPORTS = (
    *(1, 2, 4, 7, 10, 13, 14, 20, 25, 26, 29, 35, 49, 53, 56, 67, 68, 76, 77, 79),
    *(86, 95, 97, 100),
)


def read(name):
    return (ROOT / "docs" / name).read_text()


def commands():
    """Commands of k3 in fenced blocks, continued lines joined."""
    for name in DOCUMENTS:
        for block in re.findall(r"```\w*\n(.*?)```", read(name), re.S):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("k3 "):
                    yield line.split(" #")[0].strip()


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_report_100_commands_are_understood(command):
    """Names, options and values; what they do is tested where they are at home."""
    _, verb, *words = shlex.split(command)
    found = get_command(app).commands[verb]
    assert found.make_context(verb, words).params


def test_report_100_named_tests_exist_and_hold_tests():
    named = {
        path
        for name in DOCUMENTS
        for path in re.findall(r"`(tests/[\w/]*test_\w+\.py)`", read(name))
    }
    assert len(named) > 15
    for path in sorted(named):
        assert "def test_" in (ROOT / path).read_text(), path


def test_report_100_the_table_of_features_is_whole():
    """Every pair once: above the diagonal the verdict, below it who tests it."""
    table = read("serving.md").partition("## Feature by feature")[2]
    head, _, *rows = [x for x in table.splitlines() if x.startswith("|")][:10]
    names = [cell.strip() for cell in head.strip("|").split("|")][1:]
    assert [row.split("|")[1].strip() for row in rows] == names
    letters = set(re.findall(r"\b([a-f]) *\n?`tests/", table))
    for at, row in enumerate(rows):
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        assert len(cells) == len(names)
        assert all(cells)
        assert set(cells[:at]) <= letters, row


@pytest.mark.parametrize("number", REPORTS)
def test_report_100_each_report_has_a_test(number):
    tests = (ROOT / "tests").rglob("test_*.py")
    name = re.compile(rf"def test_(?:report_\d+_)*report_{number}_")
    assert any(name.search(path.read_text()) for path in tests)
