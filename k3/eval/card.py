"""The part of a model's card that says how held-out tasks went."""

from collections.abc import Sequence
from pathlib import Path

from k3.checkpoint import load
from k3.data.tokenizer import Tokenizer
from k3.eval import protocol
from k3.eval.result import Result
from k3.eval.run import run

TITLE = "## Held-out tasks"
_HEAD = """\
| task | figure | questions | share | 95 % interval |
|---|---|---|---|---|
"""
_FOOT = """
Greedy answers to questions that were not trained on, as `k3 eval` asks and counts them:
`valid` is a tool call that the tool's schema takes, `right` the wanted answer or call,
`f1` over its words; intervals are Wilson's, of `f1` bootstrapped.
"""


def complete(directory: Path, tasks: Sequence[str]) -> list[Result]:
    """Measure the checkpoint of a folder on tasks; its card gets, or changes, a table.

    Tasks that no protocol measures are left out.
    """
    names = [name for name in tasks if name in protocol.PROTOCOLS]
    if not names:
        return []
    model, tokenizer = load.load(directory), Tokenizer.load(directory)
    results = [run(model, tokenizer, protocol.PROTOCOLS[name]) for name in names]
    file = directory / "README.md"
    file.write_text(put(file.read_text(), table(results)))
    return results


def table(results: Sequence[Result]) -> str:
    """A section with a row for each figure."""
    rows = [
        f"| {result.protocol.name} | {figure.name} | {figure.count} | "
        f"{figure.value:.3f} | {figure.low:.3f} to {figure.high:.3f} |\n"
        for result in results
        for figure in result.figures
    ]
    return f"{TITLE}\n\n{_HEAD}{''.join(rows)}{_FOOT}"


def put(card: str, section: str) -> str:
    """The card with this section before that of the data, in place of an older one."""
    before, title, rest = card.partition(TITLE)
    if title:
        rest = rest[rest.find("\n## ") + 1 :] if "\n## " in rest else ""
    else:
        before, data, rest = card.partition("## Data")
        rest = data + rest
    return before.rstrip("\n") + "\n\n" + section + ("\n" + rest if rest else "")
