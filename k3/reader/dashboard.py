"""The status page: every claim with its marks, every theorem, every verdict."""

import html
from collections import Counter
from typing import Any

from k3.reader import markdown, row, status, theorems, verdicts
from k3.reader.chapter import Chapter, chapters
from k3.reader.page import Page


def page() -> Page:
    """The dashboard, computed from the code, the proofs and the verdicts."""
    return Page(
        path="status",
        title="Status",
        description="How every claim is held, computed from code, proofs, verdicts.",
        scripts=("filter.js",),
        body=f"""<header class="opening"><h1>Status</h1>
<p class="summary">How every claim is held. Computed when these pages were built, from
the code, the proofs and the verdicts; <code>k3 read --check</code> fails where evidence
is missing or older than what it speaks of.</p></header>
{_summary()}
<h2 id="claims">Claims</h2>
<div class="filters" data-filter="claims-table"></div>
<div class="scroll" tabindex="0" role="group" aria-label="Claims">
<table id="claims-table"><thead><tr><th scope="col">Claim</th>
<th scope="col">Report</th><th scope="col">Held by</th></tr></thead><tbody>
{"".join(_claims(chapter) for chapter in chapters())}</tbody></table></div>
<h2 id="verdicts">Verdicts on what runs</h2>
{_verdicts()}
<h2 id="theorems">Theorems</h2>
{_theorems()}""",
    )


def _summary() -> str:
    counts = Counter(
        mark.word
        for chapter in chapters()
        for claim in chapter.claims
        for mark in status.marks(claim)
    )
    rows = "".join(
        f"<tr><td>{status.badge(status.Mark(word), tag='span')}</td>"
        f'<td class="number">{counts[word]}</td><td>{html.escape(meaning)}</td></tr>'
        for word, (_, meaning) in status.WORDS.items()
    )
    return (
        '<table class="counts"><thead><tr><th scope="col">Mark</th>'
        '<th scope="col" class="number">Claims</th><th scope="col">Meaning</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _claims(chapter: Chapter) -> str:
    head = (
        f'<tr class="group"><th scope="rowgroup" colspan="3">'
        f'<a href="{chapter.slug}.html">{html.escape(chapter.title)}</a></th></tr>'
    )
    rows = "".join(
        f'<tr data-words="{" ".join(m.word.split()[0] for m in status.marks(claim))}">'
        f'<td><a href="{chapter.slug}.html#{html.escape(claim.id)}">'
        f"{markdown.inline(claim.title or claim.id.replace('-', ' '))}</a></td>"
        f"<td>{row.where(claim)}</td>"
        f'<td><ul class="status">{status.badges(claim)}</ul></td></tr>'
        for claim in chapter.claims
    )
    return head + rows


def _verdicts() -> str:
    rows = "".join(_verdict(name, each) for name, each in verdicts.verdicts().items())
    return (
        "<p>Each operator beside its equation: over the reals without a tolerance, and "
        "in floats, largest error over largest value. "
        "<code>python tools/reader/verdicts.py</code> judges anew.</p>"
        '<div class="scroll" tabindex="0" role="group" aria-label="Verdicts"><table>'
        '<thead><tr><th scope="col">What</th><th scope="col">Says</th>'
        '<th scope="col">Exact</th><th scope="col" class="number">float32</th>'
        '<th scope="col" class="number">bfloat16</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _verdict(name: str, found: dict[str, Any]) -> str:
    errors = found.get("errors", {})
    cells = "".join(
        f'<td class="number">{_error(errors.get(dtype))}</td>'
        for dtype in ("float32", "bfloat16")
    )
    exact = found["exact"] or "bit for bit only"
    stale = "" if verdicts.fresh(name) else " (stale)"
    return (
        f"<tr><td><code>{html.escape(name)}</code></td>"
        f"<td>{html.escape(found['says'])}</td><td>{exact}{stale}</td>{cells}</tr>"
    )


def _error(found: dict[str, float] | None) -> str:
    return "–" if found is None else f"{found['error']:.1e}"


def _theorems() -> str:
    levels = Counter(each["level"] for each in theorems.receipts().values())
    said = "; ".join(
        f"{levels[level]} of level {level} ({how})"
        for level, how in theorems.LEVELS.items()
    )
    used = {n for c in chapters() for claim in c.claims for n in claim.theorems}
    rows = "".join(
        f"<tr><td><code>{html.escape(name)}</code></td>"
        f"<td>{html.escape(each['words'])}</td><td>{html.escape(each['scope'])}</td>"
        f'<td>{each["level"]}</td><td class="number">{len(each["mutants"])}</td></tr>'
        for name, each in theorems.receipts().items()
    )
    return (
        f"<p>{len(theorems.receipts())} theorems: {said}. {len(used)} of them stand "
        "beside a claim.</p><details><summary>All theorems</summary>"
        '<div class="scroll" tabindex="0" role="group" aria-label="Theorems"><table>'
        '<thead><tr><th scope="col">Theorem</th><th scope="col">Says</th>'
        '<th scope="col">For</th><th scope="col">Level</th>'
        '<th scope="col" class="number">Wrong variants</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )
