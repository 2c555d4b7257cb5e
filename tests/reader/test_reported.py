"""What the report states is data: each value with its condition and its source."""

import pytest

from k3.errors import ConfigError
from k3.reader import chapter, markdown, reported, status

HEAD = '```chapter\ntitle = "T"\nsummary = "S"\n```\n'


def test_every_table_is_shown_in_the_chapter_of_evaluations():
    (found,) = [c for c in chapter.chapters() if c.slug == "evaluations"]
    shown = "\n".join(p.text for p in found.parts if isinstance(p, chapter.Prose))
    for name in reported.tables():
        assert reported.markdown(name) in shown
    assert reported.STATUS in status.WORDS
    assert status.WORDS[reported.STATUS][0] == reported.SIGN


def test_the_first_table_is_the_papers():
    rows = {row.what: row.values for row in reported.tables()["k2-k3"].rows}
    assert rows["layers"] == ("61", "93")
    assert rows["parameters"] == ("1.04 T", "2.78 T")
    assert rows["active parameters"] == ("32.6 B", "104.2 B")
    assert rows["attention"] == ("61 MLA", "69 KDA and 24 MLA")


@pytest.mark.parametrize("name", reported.tables())
def test_a_table_is_html_with_a_row_for_each_quantity(name):
    shown = markdown.render(reported.markdown(name))
    table = reported.tables()[name]
    assert shown.count("<tr>") == 1 + len(table.rows)
    assert "○ <em>reported only</em>" in shown
    assert shown.count('scope="col"') == 3 + len(table.columns)


@pytest.mark.parametrize(
    "change", [{"condition": ""}, {"source": ""}, {"values": []}, {"values": [""]}]
)
def test_a_value_without_its_condition_is_refused(change):
    row = {"what": "layers", "values": ["93"], "condition": "c", "source": "s"}
    table = {"title": "T", "columns": ["K3"], "rows": [row | change]}
    with pytest.raises(ConfigError, match="layers must have a value for each column"):
        reported.read({"t": table})


def test_an_unknown_table_or_key_is_refused():
    with pytest.raises(ConfigError, match=r"one of k2-k3, .* got 'k4'"):
        chapter.parse("07-x.md", HEAD + '```reported\ntable = "k4"\n```\n')
    with pytest.raises(ConfigError, match=r"07-x.md:5: a reported has no key 'tabel'"):
        chapter.parse("07-x.md", HEAD + '```reported\ntabel = "k2-k3"\n```\n')
