"""Code as HTML: the same text, a block for each line, its indent told by a class."""

import html
import re

import pytest

from k3.reader import code, source

LONG = (
    'def f(x):\n    """Words <b>.\n\n      more\n    """\n    return "a\\nb"  # why\n'
)


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG.rstrip(),
        source.find("k3.spec.kda:chunk").text,
        "X = 1",
        "x = '''a\nb'''",
    ],
)
def test_no_letter_is_lost_and_no_line(text):
    shown = code.highlighted(text)
    plain = html.unescape(re.sub("<[^>]+>", "", shown))
    assert plain == text + "\n"
    assert shown.count('<span class="i') == text.count("\n") + 1


def test_an_indent_has_its_class():
    lines = code.highlighted(LONG).split('<span class="i')
    assert [line[0] for line in lines[1:7]] == ["0", "2", "0", "3", "2", "2"]


def test_spans_are_those_that_have_a_colour():
    css = (source.ROOT / "k3/reader/static/reader.css").read_text()
    for name in code.COLOURED:
        assert re.search(rf"\.{name}\b", css), name
    names = set(re.findall(r'class="([a-z]\w*)"', code.highlighted(LONG)))
    assert {n for n in names if not re.fullmatch(r"i\d+", n)} <= code.COLOURED


def test_deep_indents_have_a_rule():
    css = (source.ROOT / "k3/reader/static/reader.css").read_text()
    assert ".i14 {" in css


def test_a_block_is_labelled_and_folds():
    found = source.find("k3.spec.kda:update")
    shown = code.block(found, label="equation")
    assert shown.startswith('<details class="code" open>')
    assert found.place in shown
    assert " open" not in code.block(found, label="runs", opened=False)[:30]
