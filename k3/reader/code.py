"""Code as highlighted HTML, and the docstring's first line with its equation."""

import html
import re
from functools import cache

from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES

from k3.reader.source import Source

_WORDS = ("k", "kn", "kd", "kc", "ow", "nf", "nc", "nb", "bp", "nd")
_VALUES = ("s1", "s2", "sd", "sa", "si", "se", "c", "c1", "mi", "mf")
COLOURED = {*_WORDS, *_VALUES}
_EQUATIONS = re.compile(r"\bEq\. ([\d, and-]+)")


@cache
def highlighted(text: str) -> str:
    """Python as HTML: a block for each line, so that a long one wraps below its indent.

    Spans have Pygments' short classes, as far as reader.css has a colour for them.
    """
    lines = [""]
    for kind, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        name = STANDARD_TYPES[kind]
        first, *others = (_span(part, name) for part in value.split("\n"))
        lines[-1] += first
        lines += others
    indents = (len(line) - len(line.lstrip(" ")) for line in text.split("\n"))
    return "".join(
        f'<span class="i{indent // 2}">{line}\n</span>'
        for indent, line in zip(indents, lines, strict=True)
    )


def _span(text: str, name: str) -> str:
    shown = html.escape(text, quote=False)
    if name not in COLOURED or not text:
        return shown
    return f'<span class="{name}">{shown}</span>'


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
