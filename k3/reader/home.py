"""The front page: what this is, how a row reads, and the chapters."""

import html

from k3.reader import live, markdown, status, theorems
from k3.reader.chapter import Chapter, by_part, chapters
from k3.reader.page import Page


def page() -> Page:
    """What a newcomer sees first."""
    claims = sum(len(each.claims) for each in chapters())
    first = chapters()[0].slug
    return Page(
        path="index",
        title="Kimi K3, read and checked",
        scripts=(live.SCRIPT,),
        styles=(live.STYLE,),
        body=f"""<header class="opening hero"><h1>Kimi K3, read and checked</h1>
<p class="summary">How a language model of 2.78 trillion numbers works, claim by claim:
in our own words, beside the code that states it, the theorem that holds it, and a
figure you can move.</p>
<p class="go"><a class="button" href="{first}.html">Start reading</a>
<a href="status.html">What is proved and what is not</a></p></header>
<section class="figures" aria-label="In numbers"><dl>
<div><dt>chapters</dt><dd>{len(chapters())}</dd></div>
<div><dt>claims</dt><dd>{claims}</dd></div>
<div><dt>theorems</dt><dd>{len(theorems.proved())}</dd></div>
<div><dt>wrong variants refuted</dt><dd>{_mutants()}</dd></div>
<div><dt>figures that compute</dt><dd>{len(live.names())}</dd></div>
</dl></section>
<section class="taste" aria-labelledby="taste"><h2 class="unseen">A first look</h2>
<h3 id="taste">One of the figures</h3>
<p>Every expert of K3 bends its numbers with a curve. SwiGLU, the curve of the models
before, has no ceiling. K3's SiTU never passes 100: that is
<a href="situ.html#situ-bound">a theorem, for all inputs</a>. Drag the point.</p>
{live.widget("situ")}</section>
<h2 id="chapters">Chapters</h2>
<div class="toc">{_toc()}</div>
<h2 id="row">How to read a row</h2>
<div class="prose"><p>A claim opens with a passage and where the report says it.
Beside it stands the equation as Python, taken from the source when these pages were
built; what runs in production is folded below it. A theorem shows its statement, for
which sizes it holds, what it rests on, and the wrong variants that are refuted with
numbers. A figure runs the same typed graph that the theorems speak of. Small marks say
how a claim is held; they are computed, never typed:</p></div>
<ul class="legend">{_legend()}</ul>""",
    )


def _toc() -> str:
    return "".join(
        f"<section><h3>{html.escape(part)}</h3>"
        f'<ol start="{listed[0][0]}">{"".join(map(_entry, listed))}</ol></section>'
        for part, listed in by_part()
    )


def _entry(each: tuple[int, Chapter]) -> str:
    number, chapter = each
    return (
        f'<li><b aria-hidden="true">{number}</b><a href="{chapter.slug}.html">'
        f"{html.escape(chapter.title)}</a><p>{markdown.inline(chapter.summary)}</p></li>"
    )


def _mutants() -> int:
    return sum(len(each["mutants"]) for each in theorems.receipts().values())


def _legend() -> str:
    return "".join(
        f"<li>{status.badge(status.Mark(word), tag='span')} {html.escape(meaning)}</li>"
        for word, (_, meaning) in status.WORDS.items()
    )
