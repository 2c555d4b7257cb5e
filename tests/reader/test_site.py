"""The static site: whole, small, and without anything from elsewhere."""

import re

import pytest

from k3.errors import ConfigError
from k3.reader import chapter, documents, formulas, links, page, site, source
from k3.reader.chapter import chapters


def test_every_page_has_its_landmarks_and_one_heading():
    for path, content in site.site().items():
        if not path.endswith(".html"):
            continue
        text = content.decode()
        for mark in ("<main ", "<nav ", "<header ", "<footer", 'class="skip"'):
            assert mark in text, (path, mark)
        assert len(re.findall("<h1[ >]", text)) == 1, path
        found = re.findall(r'\sid="([^"]+)"', text)
        assert len(found) == len(set(found)), path


def test_no_page_asks_another_place():
    assert list(links.external(site.site())) == []
    assert list(links.external({"a.html": b'<script src="https://x/y.js">'})) == [
        "a.html: https://x/y.js"
    ]


def test_what_ships_is_below_two_megabytes():
    folder = source.ROOT / "k3"
    files = [
        path
        for name in ("reader", "paper")
        for path in (folder / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert sum(path.stat().st_size for path in files) < 2_000_000


def test_our_scripts_are_small():
    scripts = list((source.ROOT / "k3/reader/static").rglob("*.js"))
    assert sum(path.stat().st_size for path in scripts) < 100_000
    assert all(len(path.read_text().splitlines()) <= 300 for path in scripts)


def test_every_chapter_is_below_half_a_megabyte_with_its_formulas_set():
    """Bare, with every script and style that a page asks for, and its fonts."""
    found = site.site()
    shared = sum(
        len(content)
        for path, content in found.items()
        if path.endswith((".js", ".css", "KaTeX_Main-Regular.woff2"))
        or path.endswith(
            ("Main-Bold.woff2", "Math-Italic.woff2", "Size1-Regular.woff2")
        )
    )
    for each in chapters():
        content = found[f"{each.slug}.html"]
        assert len(content) + shared < 500_000, each.slug
        assert b"math-missing" not in content, each.slug
        assert b'class="absent"' not in content, each.slug


WORKED = {
    "situ": ["1.848469", "9.585417"],
    "kda": ["7.4", "5.25", "2.25"],
    "mla": ["576", "30,720"],
    "experts": ["3/7", "4/7"],
    "post-training": ["2.169"],
    "mx": ["3.00"],
    "draft": ["0.70"],
    "attn-res": ["9"],
    "prefix-cache": ["2,560"],
}


def test_the_articles_numbers_stand_in_the_pages_as_computed():
    for slug, numbers in WORKED.items():
        text = site.site()[f"{slug}.html"].decode()
        shown = set(re.findall(r'<data class="worked" value="[^"]+">([^<]*)<', text))
        assert shown.issuperset(numbers), slug


def test_build_writes_what_is_served(tmp_path):
    written = site.build(tmp_path / "site")
    assert tmp_path / "site" / "index.html" in written
    for path, content in site.site().items():
        assert (tmp_path / "site" / path).read_bytes() == content


def test_names_of_pages_are_told_apart():
    names = [each.slug for each in chapters()] + [path for path, _ in page.PAGES]
    assert len(names) == len(set(names))


def test_a_missing_document_is_refused():
    with pytest.raises(ConfigError, match="the reader shows docs/none"):
        documents.text("docs/none.md")


def test_formulas_are_kept_by_what_they_say():
    assert formulas.key(" a  b ", display=False) == "$a b"
    assert formulas.key("a", display=True) == "$$a"


def test_the_front_page_tells_every_chapter():
    front = site.site()["index.html"].decode()
    assert all(f'href="{each.slug}.html"' in front for each in chapter.chapters())
