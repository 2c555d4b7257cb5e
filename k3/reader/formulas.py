"""Formulas, typeset beforehand: `tools/reader/formulas.py` fills static/math.json.

No page loads a typesetter. A formula that the cache lacks is shown as TeX, and
`k3 read --check` fails with the command that rebuilds the cache.
"""

import html
import json
from functools import cache
from importlib import resources

from k3.reader import worked

REBUILD = "python tools/reader/formulas.py"


@cache
def typeset() -> dict[str, str]:
    """HTML by key; the key says whether the formula stands alone."""
    file = resources.files("k3.reader") / "static" / "math.json"
    return dict(json.loads(file.read_text())) if file.is_file() else {}


def key(tex: str, *, display: bool) -> str:
    """How the cache names a formula."""
    return ("$$" if display else "$") + " ".join(worked.substituted(tex).split())


def show(tex: str, *, display: bool) -> str:
    """The formula as HTML."""
    found = typeset().get(key(tex, display=display))
    tag = "div" if display else "span"
    if found is None:
        plain = html.escape(worked.substituted(tex).strip())
        return f'<{tag} class="math-missing"><code>{plain}</code></{tag}>'
    # A wide formula scrolls, so it must be reachable by keyboard.
    reach = ' tabindex="0"' if display else ""
    return f'<{tag} class="math"{reach}>{found}</{tag}>'
