"""A claim as a row: passage, code, theorems, graph, widget."""

import html
from collections.abc import Callable

from k3.errors import K3Error
from k3.reader import code, live, markdown, source, status, theorems
from k3.reader.chapter import Claim

REPORT = "https://arxiv.org/pdf/2607.24653"
# Of one claim's code that stands open.
MOST_LINES = 44


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
{_theorems(claim)}
</div>
{_live(claim)}
</article>"""


def where(claim: Claim) -> str:
    """Section and equation, as far as the claim has them."""
    section = f"§{claim.section}" if claim.section[:1].isdigit() else claim.section
    equation = f"Eq. {claim.equation}" if claim.equation else ""
    return html.escape(", ".join(part for part in (section, equation) if part))


def _where(claim: Claim) -> str:
    """The same as a link to the public report, at the page where it is known."""
    parts = [where(claim), f"page {claim.page}" if claim.page else ""]
    said = ", ".join(part for part in parts if part)
    anchor = f"#page={claim.page}" if claim.page else ""
    return f'<a href="{REPORT}{anchor}">{said}</a>' if said else ""


def _limits(claim: Claim) -> str:
    if not claim.limits:
        return ""
    return f'<p class="limits"><b>Stops at</b> {markdown.inline(claim.limits)}</p>'


def _status(claim: Claim) -> str:
    return f'<ul class="status" aria-label="Status">{status.badges(claim)}</ul>'


def _code(claim: Claim) -> str:
    lines, shown = 0, []
    for name in claim.code:
        # The first stands open; what follows, as long as it is no wall of code.
        opened = lines == 0 or lines + _lines(name) <= MOST_LINES
        lines += _lines(name)
        shown.append(_shown(_block, name, _label(name), opened))
    return "".join(shown + [_shown(_block, name, "runs", False) for name in claim.runs])


def _lines(name: str) -> int:
    try:
        return source.find(name).text.count("\n") + 1
    except K3Error:
        return 0


def _label(name: str) -> str:
    return "equation" if name.startswith("k3.spec.") else "code"


def _block(name: str, label: str, opened: bool) -> str:
    return code.block(source.find(name), label=label, opened=opened)


def _theorems(claim: Claim) -> str:
    return "".join(_shown(theorems.show, name) for name in claim.theorems)


def _live(claim: Claim) -> str:
    """The figure and the graph, below the row."""
    parts = _shown(live.widget, claim.widget) if claim.widget else ""
    parts += _shown(live.graph, claim.graph) if claim.graph else ""
    return f'<div class="live">{parts}</div>' if parts else ""


def _shown(show: Callable[..., str], *given: object) -> str:
    """What `show` makes, or why it cannot: `k3 read --check` fails then too."""
    try:
        return show(*given)
    except K3Error as error:
        return f'<p class="absent">{html.escape(str(error))}</p>'
