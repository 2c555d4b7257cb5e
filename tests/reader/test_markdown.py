"""Markdown with formulas, worked numbers, anchors; no HTML passes through."""

import pytest

from k3.reader import formulas, markdown


def test_formulas_are_told_from_prices():
    assert list(markdown.maths("$a_b$ and $5 and $6, $$x$$")) == [
        ("a_b", False),
        ("x", True),
    ]
    assert list(markdown.maths("`$a$`")) == []


def test_a_formula_alone_spans_lines():
    text = "before\n\n$$\na \\\\\nb\n$$\n\nafter"
    assert list(markdown.maths(text)) == [("\na \\\\\nb\n", True)]
    assert "<p>after</p>" in markdown.render(text)


def test_what_the_cache_lacks_is_shown_as_tex():
    assert "math-missing" in formulas.show("\\nowhere{<}", display=False)
    assert "&lt;" in formulas.show("\\nowhere{<}", display=False)


def test_worked_numbers_say_where_they_come_from():
    html = markdown.render("{= k3.spec.situ:soft_cap(2., 4) | .3f =}")
    assert (
        '<data class="worked" value="k3.spec.situ:soft_cap(2., 4)">1.848</data>' in html
    )


def test_html_is_escaped_and_headings_are_anchors():
    assert "<script>" not in markdown.render("<script>alert(1)</script>")
    assert '<h2 id="one-number-first">' in markdown.render("## One number first")
    assert '<h2 id="a-2">' in markdown.render("## A\n\n## A")


@pytest.mark.parametrize(("head", "tag"), [("a", '<th scope="col">'), (" ", "<td>")])
def test_a_table_without_words_in_its_head_heads_nothing(head, tag):
    assert tag in markdown.render(f"| {head} | b |\n|---|---|\n| 1 | 2 |\n")
    assert 'tabindex="0"' in markdown.render(f"| {head} | b |\n|---|---|\n| 1 | 2 |\n")


def test_a_formula_at_the_head_of_a_column_has_a_name():
    html = markdown.render("| $\\alpha$ | b |\n|---|---|\n| 1 | 2 |\n")
    assert '<th scope="col"><span class="unseen">alpha</span>' in html


def test_code_is_reached_by_keys_and_escaped():
    html = markdown.render("```\nk3 <x>\n```\n")
    assert html == '<pre tabindex="0"><code>k3 &lt;x&gt;\n</code></pre>\n'


def test_links_are_found():
    assert list(markdown.links("[a](kda.html#x) and <https://b.c>")) == [
        "kda.html#x",
        "https://b.c",
    ]
