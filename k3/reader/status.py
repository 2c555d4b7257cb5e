"""What a claim is held by, computed from code, proofs and verdicts: never typed."""

import html
from dataclasses import dataclass

from k3.reader import theorems
from k3.reader.chapter import Claim


@dataclass(frozen=True, slots=True)
class Mark:
    """A status word, its sign, and what stands behind it."""

    word: str
    sign: str
    detail: str = ""


def marks(claim: Claim) -> tuple[Mark, ...]:
    """Every status that the evidence of a claim supports."""
    found = []
    if claim.code:
        found.append(Mark("written", "✎", "the equation is code"))
    if claim.theorems:
        levels = sorted({theorems.receipt(n)["level"] for n in claim.theorems})
        found.append(Mark("proved", "✓", ", ".join(levels)))
    return tuple(found) or (Mark("reported only", "○", "no evidence of ours"),)


def badges(claim: Claim) -> str:
    """The marks as list items."""
    return "".join(
        f'<li data-status="{mark.word.split()[0]}" title="{html.escape(mark.detail)}">'
        f'<span aria-hidden="true">{mark.sign}</span> {mark.word}</li>'
        for mark in marks(claim)
    )
