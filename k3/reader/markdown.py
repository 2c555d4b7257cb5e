"""Markdown to HTML, with `$…$`, `$$…$$` and worked numbers."""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from k3.errors import ConfigError
from k3.reader import formulas, worked

_INLINE = re.compile(r"\$(?![\s$])((?:\\.|[^$\\])+?)(?<!\s)\$(?!\d)", re.S)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.S)


def render(text: str) -> str:
    """The text as HTML; raw HTML in it is escaped."""
    return str(_maker().render(text))


def inline(text: str) -> str:
    """One line without a paragraph around it."""
    return str(_maker().renderInline(text))


def maths(text: str) -> Iterator[tuple[str, bool]]:
    """(TeX, whether it stands alone) of every formula of a text."""
    for token in _flat(_maker().parse(text)):
        if token.type in ("math", "math_display"):
            yield token.content, token.type == "math_display"


def links(text: str) -> Iterator[str]:
    """The target of every link of a text."""
    for token in _flat(_maker().parse(text)):
        if token.type == "link_open":
            yield str(token.attrGet("href"))


def slug(text: str) -> str:
    """A heading as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or ())


@cache
def _maker() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    made.block.ruler.before(
        "fence", "math_display", _display_block, {"alt": ["paragraph"]}
    )
    made.inline.ruler.before("escape", "math", _math)
    made.inline.ruler.before("escape", "worked", _worked)
    for name, rule in {**_MATHS, **_TABLE}.items():
        made.add_render_rule(name, rule)
    made.add_render_rule("heading_open", _heading)
    made.add_render_rule("fence", _fence)
    return made


def _math(state: StateInline, silent: bool) -> bool:
    for pattern, kind in ((_DISPLAY, "math_display"), (_INLINE, "math")):
        found = pattern.match(state.src, state.pos)
        if found:
            return _push(state, found, kind, silent)
    return False


def _worked(state: StateInline, silent: bool) -> bool:
    found = worked.PATTERN.match(state.src, state.pos)
    return found is not None and _push(state, found, "worked", silent)


def _push(state: StateInline, found: re.Match[str], kind: str, silent: bool) -> bool:
    if not silent:
        token = state.push(kind, "", 0)
        token.content = found[1]
    state.pos = found.end()
    return True


def _display_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula between `$$` lines, which may hold blank-looking TeX lines."""
    first = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("$$", first):
        return False
    found = _DISPLAY.match(state.src, first, state.eMarks[end - 1])
    if found is None or state.src[found.end() :].split("\n", 1)[0].strip():
        return False
    if not silent:
        token = state.push("math_display", "", 0)
        token.content, token.block = found[1], True
        state.line = start + found[0].count("\n") + 1
        token.map = [start, state.line]
    return True


def _show(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return formulas.show(tokens[at].content, display=False)


def _show_display(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return formulas.show(tokens[at].content, display=True)


def _show_worked(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    try:
        found = worked.value(tokens[at].content)
    except ConfigError as error:
        return f'<strong class="absent">{html.escape(str(error))}</strong>'
    source = html.escape(found.expression, quote=True)
    return f'<data class="worked" value="{source}">{html.escape(found.shown)}</data>'


def _heading(
    maker: Any, tokens: Sequence[Token], at: int, options: Mapping[str, Any], env: Any
) -> str:
    name = slug(tokens[at + 1].content)
    count = env[name] = env.get(name, 0) + 1
    tokens[at].attrSet("id", name if count == 1 else f"{name}-{count}")
    return str(maker.renderToken(tokens, at, options, env))


def _fence(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    # A long line scrolls on a narrow window, so keys must reach it.
    shown = html.escape(tokens[at].content, quote=False)
    return f'<pre tabindex="0"><code>{shown}</code></pre>\n'


def _table_open(*_: Any) -> str:
    return '<div class="scroll" tabindex="0" role="group"><table>'


def _table_close(*_: Any) -> str:
    return "</table></div>"


def _head_open(
    maker: Any, tokens: Sequence[Token], at: int, options: Mapping[str, Any], env: Any
) -> str:
    # A heading of no words heads nothing.
    if not tokens[at + 1].content:
        return "<td>"
    tokens[at].attrSet("scope", "col")
    said = _spoken(tokens[at + 1].content)
    # A formula alone has no text that tools see: it is said in words beside it.
    hidden = f'<span class="unseen">{said}</span><span aria-hidden="true">'
    return str(maker.renderToken(tokens, at, options, env)) + (hidden if said else "")


def _spoken(head: str) -> str:
    """The TeX of a heading that is one formula, as words; else nothing."""
    alone = _INLINE.fullmatch(head)
    return html.escape(alone[1].replace("\\", "")) if alone else ""


def _head_close(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    head = tokens[at - 1].content
    return ("</span></th>" if _spoken(head) else "</th>") if head else "</td>"


_MATHS: dict[str, Callable[..., str]] = {
    "math": _show,
    "math_display": _show_display,
    "worked": _show_worked,
}
_TABLE: dict[str, Callable[..., str]] = {
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _head_open,
    "th_close": _head_close,
}
