"""Answers with citations: how they are written, and whether they hold.

The first line is the answer. Each line after it is a citation, a document's name in
brackets and a quote from it: `[name] the words`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from k3.envs.documents.reader import Reader, plain

MOST_CHARS = 400
SPARE = 2
FORM = (
    "Answer on the first line, with the answer alone. Under it cite what supports it, "
    "a line for each quote: the name of a document in brackets, then the whole "
    f"sentence or line as it stands there, of at most {MOST_CHARS} characters. Cite "
    "only what you have opened."
)
_CITED = re.compile(r"\[([^\[\]]+)\]\s*(.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cited:
    """An answer, and its citations by document and quote."""

    answer: str
    citations: tuple[tuple[str, str], ...]


def read(written: str) -> Cited | None:
    """What was written in the form above; None for anything else."""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    found = [_CITED.fullmatch(line) for line in lines[1:]]
    if not lines or None in found:
        return None
    pairs = tuple((m[1].strip(), _bare(m[2])) for m in found if m)
    return Cited(answer=lines[0], citations=pairs)


def write(answer: str, citations: Sequence[tuple[str, str]]) -> str:
    """An answer in the form above."""
    return "\n".join(
        [answer, *(f"[{name}] {plain(quote)}" for name, quote in citations)]
    )


def holds(written: str, right: str, passages: Sequence[str], reader: Reader) -> bool:
    """Whether the answer is right and every passage is in a quote that was opened.

    No citation may be invented, too long, or of what was not opened, and there are
    at most two more than passages.
    """
    said = read(written)
    if said is None or said.answer != right:
        return False
    if len(said.citations) > len(passages) + SPARE:
        return False
    if not all(_stands(cited, reader) for cited in said.citations):
        return False
    quotes = [plain(quote) for _, quote in said.citations]
    return all(any(plain(p) in quote for quote in quotes) for p in passages)


def _stands(cited: tuple[str, str], reader: Reader) -> bool:
    name, quote = cited
    return len(quote) <= MOST_CHARS and reader.has_opened(name, quote)


def _bare(quote: str) -> str:
    """A quote without the quotation marks around it."""
    quote = quote.strip()
    if len(quote) > 1 and quote[0] == quote[-1] == '"':
        return quote[1:-1].strip()
    return quote
