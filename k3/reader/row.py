"""A claim as a row: passage, code, theorems, graph, widget."""

import html

from k3.reader import code, markdown, source, status, theorems
from k3.reader.chapter import Claim

REPORT = "https://arxiv.org/pdf/2607.24653"


def show(claim: Claim) -> str:
    """The row as an article of its own."""
    title = markdown.inline(claim.title or claim.id.replace("-", " "))
    return f"""<article class="claim" id="{html.escape(claim.id)}" tabindex="-1">
<div class="passage">
<h3><a class="anchor" href="#{html.escape(claim.id)}">{title}</a></h3>
<p class="where">{_where(claim)}</p>
{markdown.render(claim.text)}
{_limits(claim)}
{_status(claim)}
</div>
<div class="evidence">
{_code(claim)}
{"".join(theorems.show(name) for name in claim.theorems)}
</div>
{_widget(claim)}
</article>"""


def _where(claim: Claim) -> str:
    section = f"§{claim.section}"
    if claim.equation:
        section += f", Eq. {claim.equation}"
    if claim.page:
        return f'<a href="{REPORT}#page={claim.page}">{section}, page {claim.page}</a>'
    return section


def _limits(claim: Claim) -> str:
    if not claim.limits:
        return ""
    return f'<p class="limits"><b>Stops at</b> {markdown.inline(claim.limits)}</p>'


def _status(claim: Claim) -> str:
    return f'<ul class="status" aria-label="Status">{status.badges(claim)}</ul>'


def _code(claim: Claim) -> str:
    spec = [code.block(source.find(name), label="equation") for name in claim.code]
    runs = [
        code.block(source.find(name), label="runs", opened=False) for name in claim.runs
    ]
    return "".join(spec + runs)


def _widget(claim: Claim) -> str:
    """The place of the widget, and of the graph where there is none."""
    parts = ""
    if claim.widget:
        parts += f'<k3-widget name="{html.escape(claim.widget)}"></k3-widget>'
    if claim.graph:
        parts += f'<k3-graph name="{html.escape(claim.graph)}"></k3-graph>'
    return f'<div class="live">{parts}</div>' if parts else ""
