"""The front page: what this is, how a row reads, and the chapters."""

import html

from k3.reader import markdown, status, theorems
from k3.reader.chapter import chapters
from k3.reader.page import Page


def page() -> Page:
    """What a newcomer sees first."""
    rows = "".join(
        f'<li><a href="{each.slug}.html">{html.escape(each.title)}</a>'
        f"<p>{markdown.inline(each.summary)}</p></li>"
        for each in chapters()
    )
    claims = sum(len(each.claims) for each in chapters())
    first = chapters()[0].slug
    return Page(
        path="index",
        title="Kimi K3, read and checked",
        body=f"""<header class="opening"><h1>Kimi K3, read and checked</h1>
<p class="summary">The paper's claims in our own words, each beside the code that
states it, the theorem that holds it, and a figure you can move.</p>
<p class="go"><a class="button" href="{first}.html">Start reading</a>
<a href="status.html">See what is proved and what is not</a></p></header>
<section class="figures" aria-label="In numbers"><dl>
<div><dt>claims</dt><dd>{claims}</dd></div>
<div><dt>theorems</dt><dd>{len(theorems.proved())}</dd></div>
<div><dt>wrong variants refuted</dt><dd>{_mutants()}</dd></div>
<div><dt>chapters</dt><dd>{len(chapters())}</dd></div>
</dl></section>
<h2 id="chapters">Chapters</h2>
<ol class="toc">{rows}</ol>
<h2 id="row">How to read a row</h2>
<div class="prose"><p>A claim opens with a passage and where the report says it.
Beside it stands the equation as Python, taken from the source when these pages were
built; what runs in production is folded below it. A theorem shows its statement, for
which sizes it holds, what it rests on, and the wrong variants that are refuted with
numbers. A figure runs the same typed graph that the theorems speak of. Small marks say
how a claim is held; they are computed, never typed:</p></div>
<ul class="legend">{_legend()}</ul>""",
    )


def _mutants() -> int:
    return sum(len(each["mutants"]) for each in theorems.receipts().values())


def _legend() -> str:
    return "".join(
        f"<li>{status.badge(status.Mark(word), tag='span')} {html.escape(meaning)}</li>"
        for word, (_, meaning) in status.WORDS.items()
    )
