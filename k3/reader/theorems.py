"""The theorem pane: statement, hypotheses, how it is proved, its refuted variants.

A receipt is what the last run of every proof has shown: `tools/reader/receipts.py`
writes them to `receipts.json`. One whose digest is not that of `k3/proof/proved.json`
is stale.
"""

import html
import json
from functools import cache
from importlib import resources
from typing import Any

from k3.errors import ConfigError

REBUILD = "k3 prove --all --json | python tools/reader/receipts.py"
LEVELS = {
    "K": "kernel rules and checked certificates",
    "KS": "kernel, and ground steps on which z3 and cvc5 agree",
    "N": "normal form of graphs",
}


@cache
def receipts() -> dict[str, dict[str, Any]]:
    """What the last run of every proof has shown, by name."""
    file = resources.files("k3.reader") / "receipts.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))


@cache
def proved() -> dict[str, dict[str, Any]]:
    """`k3/proof/proved.json`: level, axioms and digest by name."""
    file = resources.files("k3.proof") / "proved.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))


def fresh(name: str) -> bool:
    """Whether the receipt is that of the statement as it was last proved."""
    receipt, now = receipts().get(name), proved().get(name)
    return bool(receipt and now and receipt["digest"] == now["digest"])


def receipt(name: str) -> dict[str, Any]:
    """The receipt of a theorem. Raises: ConfigError for one that does not exist."""
    if name not in receipts():
        raise ConfigError(
            f"a theorem must be one of k3 prove: got {name!r}; k3 prove lists them"
        )
    return receipts()[name]


def show(name: str) -> str:
    """The theorem as HTML that can be folded away."""
    found = receipt(name)
    level = html.escape(found["level"])
    how = LEVELS.get(found["level"], "not proved since it changed")
    return f"""<details class="theorem"><summary><span class="label">theorem</span>
<code>{html.escape(name)}</code><span class="level" title="{how}">{level}</span>
<span class="words">{html.escape(found["words"])}</span></summary>
<pre class="statement" tabindex="0">{html.escape(found["statement"])}</pre>
<dl>
<dt>Scope</dt><dd>{html.escape(found["scope"])}</dd>
<dt>Level {level}</dt><dd>{how}</dd>
<dt>Axioms</dt><dd>{html.escape(", ".join(found["axioms"]) or "none")}</dd>
<dt>Proof</dt><dd>{found["steps"]:,} kernel steps;
<code>k3 prove {html.escape(name)}</code> proves it again</dd>
</dl>
{_mutants(found["mutants"])}</details>"""


def _mutants(found: dict[str, str]) -> str:
    if not found:
        return ""
    rows = "".join(
        f"<li><b>{html.escape(wrong)}</b> <span>{html.escape(why)}</span></li>"
        for wrong, why in found.items()
    )
    return f'<p class="wrong">Refuted variants</p><ul class="mutants">{rows}</ul>'
