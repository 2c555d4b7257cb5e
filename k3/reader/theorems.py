"""The theorem pane: statement, hypotheses, how it is proved, its refuted variants.

A receipt is what the last run of every proof has shown: `tools/reader/receipts.py`
writes them to `receipts.json`. One whose digest is not that of `k3/proof/proved.json`
is stale.
"""

import html
import json
import re
from functools import cache
from importlib import resources
from typing import Any

from k3.errors import ConfigError
from k3.reader import markdown, source, statement

REBUILD = "k3 prove --all --json | python tools/reader/receipts.py"
LEVELS = {
    "K": "kernel rules and checked certificates",
    "KS": "kernel, and ground steps on which z3 and cvc5 agree",
    "N": "normal form of graphs",
}

_FALSE = re.compile(r"(.*?): (.*) is false: (.*)", re.S)


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
<span class="words">{markdown.inline(found["words"])}</span></summary>
{statement.show(found["statement"])}
<dl>
<dt>Scope</dt><dd>{html.escape(found["scope"])}</dd>
<dt>Held by</dt><dd>level {level}: {how}</dd>
<dt>Axioms</dt><dd>{html.escape(", ".join(found["axioms"]) or "none")}</dd>
<dt>Proof</dt><dd>{found["steps"]:,} kernel steps{_place(name)};
<code>k3 prove {html.escape(name)}</code> proves it again</dd>
</dl>
{_mutants(found)}</details>"""


def _place(name: str) -> str:
    path = f"k3/proof/{name.partition('.')[0]}.py"
    there = (source.ROOT / path).is_file()
    return f", <code>{html.escape(path)}</code>" if there else ""


def _mutants(found: dict[str, Any]) -> str:
    indexed = statement.families(statement.parse(found["statement"]))
    rows = "".join(
        f"<li><b>{html.escape(wrong)}</b>{_refuted(why, indexed)}</li>"
        for wrong, why in found["mutants"].items()
    )
    return (
        '<p class="wrong">Wrong variants, each refuted with numbers</p>'
        f'<ul class="mutants">{rows}</ul>'
    )


def _refuted(why: str, indexed: set[str]) -> str:
    """What a variant says, the inputs at which it fails, and both values there."""
    parts = _FALSE.match(why)
    if parts is None:
        return f"<span>{html.escape(why)}</span>"
    inputs, says, values = parts.groups()
    return (
        f'<span class="says">{statement.formula(says, indexed)}</span>'
        f"<span>fails at {html.escape(inputs)}: {html.escape(values)}</span>"
    )
