"""Front page, frame, dashboard, documents, search and chat, as HTML."""

import json
import re

import pytest

from k3.reader import (
    chat,
    dashboard,
    documents,
    home,
    live,
    page,
    search,
    status,
    theorems,
    verdicts,
)
from k3.reader.chapter import by_part, chapters


def test_the_book_has_parts_and_no_chapter_is_in_none():
    parts = by_part()
    assert [each for _, group in parts for _, each in group] == list(chapters())
    assert all(name for name, _ in parts)
    assert 4 <= len(parts) <= 8


def test_the_front_page_counts_what_there_is():
    body = home.page().body
    claims = sum(len(each.claims) for each in chapters())
    assert f"<dt>claims</dt><dd>{claims}</dd>" in body
    assert f"<dt>theorems</dt><dd>{len(theorems.proved())}</dd>" in body
    assert f"<dt>figures that compute</dt><dd>{len(live.names())}</dd>" in body
    assert '<k3-widget name="situ"' in body


def test_the_contents_mark_the_page_one_is_on():
    written = page.write(page.Page(path="kda", title="<T>", body="b"))
    assert written.count('aria-current="page"') == 1
    assert "<title>&lt;T&gt; · k3 reader</title>" in written
    assert f"<p>{by_part()[0][0]}</p><ol>" in written


def test_the_dashboard_has_every_claim_verdict_and_theorem():
    body = dashboard.page().body
    for chapter in chapters():
        for claim in chapter.claims:
            assert f'href="{chapter.slug}.html#{claim.id}"' in body
    assert all(f"<code>{name}</code>" in body for name in verdicts.verdicts())
    assert all(f"<code>{name}</code>" in body for name in theorems.receipts())
    assert all(f'data-status="{word.split()[0]}"' in body for word in status.WORDS)


def test_the_dashboard_says_what_is_stale(monkeypatch):
    monkeypatch.setattr(verdicts, "fresh", lambda name: False)
    monkeypatch.setattr(theorems, "fresh", lambda name: False)
    body = dashboard.page().body
    assert body.count("(stale)") == len(verdicts.verdicts())
    row = re.search(r'<tr data-words="([^"]*)"><td><a href="kda.html#kda-update', body)
    assert "stale" in row[1].split()
    assert "proved" not in row[1].split()
    assert "exact" not in row[1].split()


@pytest.mark.parametrize("each", documents.DOCUMENTS)
def test_documents_are_pages_with_one_heading(each):
    found = {p.path: p.body for p in documents.pages()}[each.path]
    assert found.count("<h1") == 1
    assert "<!--" not in found


def test_the_index_finds_claims_theorems_and_headings():
    rows = json.loads(search.index())
    addresses = {row[0] for row in rows}
    assert "kda.html#kda-update" in addresses
    assert "status.html" in addresses
    named = {row[1] for row in rows if row[2] == "theorem"}
    assert named == theorems.receipts().keys()
    assert not any("{=" in row[3] or "\\" in row[3] for row in rows)
    assert len(search.index()) < 150_000


def test_the_chat_has_its_fields_and_says_what_it_needs():
    body = chat.page().body
    for field in ("words", "effort", "most", "key", "stop", "new", "turns", "state"):
        assert f'id="{field}"' in body
    assert "<noscript>" in body


def test_an_unknown_figure_is_refused():
    with pytest.raises(Exception, match="a widget must be one of"):
        live.widget("none")
