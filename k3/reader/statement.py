"""A theorem's statement as mathematics in HTML: variables, hypotheses, conclusion.

Receipts hold what `k3.logic.show` prints. Here only its spelling changes: sums get
their range below them, entries of families become indices, and names Greek letters.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "eps": "ε",
    "epsilon": "ε",
    "theta": "θ",
    "lam": "λ",
    "sigma": "σ",
    "tau": "τ",
}
_NAME = re.compile(r"[^\W\d][\w.′]*")
_CALL = re.compile(r"([^\W\d][\w.′]*|Σ)\(")
_LAMBDA = re.compile(r"^\(λ([^.]+)\. (.*)\)$", re.S)
_SUMS = {"Σ": "&lt;", "total": "∈"}


@dataclass(frozen=True, slots=True)
class Statement:
    """The parts of a statement, as they are printed."""

    variables: tuple[tuple[str, str], ...]
    hypotheses: tuple[str, ...]
    conclusion: str


def parse(text: str) -> Statement:
    """The parts of what `k3.logic.show.statement` or `k3.proof.graphs` prints."""
    variables, hypotheses, rest = [], [], []
    for line in text.splitlines():
        if line.startswith("for all "):
            variables += list(_variables(line.removeprefix("for all ")))
        elif line.startswith("  if "):
            hypotheses.append(line.removeprefix("  if "))
        else:
            rest.append(line.strip())
    return Statement(tuple(variables), tuple(hypotheses), " ".join(rest))


def _variables(text: str) -> Iterator[tuple[str, str]]:
    """(names, sort): neighbours of one sort together; sizes come without a sort."""
    gathered: dict[str, list[str]] = {}
    for part in split(text):
        name, colon, sort = part.partition(" : ")
        gathered.setdefault(sort if colon else "", []).append(name)
    yield from ((", ".join(names), sort) for sort, names in gathered.items())


def show(text: str) -> str:
    """The statement as HTML."""
    found = parse(text)
    indexed = families(found)
    variables = "; ".join(_declared(*each) for each in found.variables)
    lines = [f"<p><b>For all</b> {variables}</p>"] if variables else []
    if found.hypotheses:
        given = ", ".join(formula(each, indexed) for each in found.hypotheses)
        lines.append(f"<p><b>Given</b> {given}</p>")
    parts = split(found.conclusion, " ∧ ")
    last = "<br>".join(
        formula(each, indexed) + (" ∧" if i + 1 < len(parts) else "")
        for i, each in enumerate(parts)
    )
    word = "<b>Then</b> " if lines else ""
    return f'<div class="statement">{"".join(lines)}<p>{word}{last}</p></div>'


def families(found: Statement) -> set[str]:
    """The variables whose arguments are whole numbers: they are shown as indices."""
    return {
        name
        for names, sort in found.variables
        for name in split(names)
        if "→" in sort and "ℤ" in sort.partition("→")[0]
    }


def _declared(names: str, sort: str) -> str:
    if not sort:
        return formula(names, ())
    sign = "∈" if sort in ("ℝ", "ℤ") else ":"
    whole = sort.startswith("(") and closing(sort, 0) == len(sort) - 1
    return f"{formula(names, ())} {sign} {html.escape(sort[1:-1] if whole else sort)}"


def formula(text: str, indexed: Sequence[str] | set[str]) -> str:
    """One formula as HTML; `indexed` are the names whose arguments are indices."""
    out, at = "", 0
    while found := _CALL.search(text, at):
        end = closing(text, found.end() - 1)
        inside = text[found.end() : end]
        out += _plain(text[at : found.start()])
        out += _call(found[1], split(inside), indexed)
        at = end + 1
    return out + _plain(text[at:])


def _call(name: str, args: list[str], indexed: Sequence[str] | set[str]) -> str:
    if name in _SUMS and len(args) == 2 and (found := _LAMBDA.match(args[0])):
        below = f"{_plain(found[1])}{_SUMS[name]}{formula(args[1], indexed)}"
        return f"∑<sub>{below}</sub>({formula(found[2], indexed)})"
    shown = ", ".join(formula(each, indexed) for each in args)
    if name in indexed:
        return f"{_plain(name)}<sub>{shown}</sub>"
    return f"√({shown})" if name == "sqrt" else f"{_plain(name)}({shown})"


def _plain(text: str) -> str:
    """Text without calls: Greek letters, and letters alone in italics."""

    def name(found: re.Match[str]) -> str:
        word = GREEK.get(found[0], found[0])
        bare = word.rstrip("′")
        return f"<i>{word}</i>" if len(bare) == 1 and bare.isalpha() else word

    return _NAME.sub(name, html.escape(text, quote=False).replace("&lt;", "<")).replace(
        " < ", " &lt; "
    )


def closing(text: str, start: int) -> int:
    """The place of the parenthesis that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if not depth:
            return i
    return len(text)


def split(text: str, sign: str = ", ") -> list[str]:
    """The parts of a text between signs that stand in no parentheses."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if not depth and text.startswith(sign, i):
            parts.append(text[start:i])
            start = i + len(sign)
    return [*parts, text[start:]]
