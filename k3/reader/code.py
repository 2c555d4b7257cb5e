"""Code as highlighted HTML, and the docstring's first line with its equation."""

import html
import re
from functools import cache

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

from k3.reader.source import Source

_EQUATIONS = re.compile(r"\bEq\. ([\d, and-]+)")


@cache
def highlighted(text: str) -> str:
    """Python as HTML spans of Pygments' short classes."""
    return str(highlight(text, PythonLexer(), HtmlFormatter(nowrap=True)))


def block(found: Source, *, label: str, opened: bool = True) -> str:
    """A definition that can be folded away."""
    name = found.name.split(":")[1]
    return (
        f'<details class="code"{" open" if opened else ""}>'
        f'<summary><span class="label">{label}</span> <code>{html.escape(name)}</code>'
        f'<span class="place">{html.escape(found.place)}</span></summary>'
        f'<pre tabindex="0" aria-label="{html.escape(found.name)}"><code>'
        f"{highlighted(found.text)}</code></pre></details>"
    )


def equations(docstring: str) -> set[str]:
    """The equation numbers that a docstring's first sentence names."""
    first = " ".join(docstring.split("\n\n")[0].split())
    return {n for listed in _EQUATIONS.findall(first) for n in numbers(listed)}


def numbers(listed: str) -> set[str]:
    """The numbers of a list such as 1, 3-5 and 7."""
    found: set[str] = set()
    for part in re.split(r",|and", listed):
        first, dash, last = part.strip(" .").partition("-")
        if dash and last.strip().isdigit():
            found |= {str(n) for n in range(int(first), int(last) + 1)}
        elif first.strip():
            found.add(first.strip())
    return found
