"""What a claim is held by, computed from code, proofs and verdicts: never typed."""

import html
from collections.abc import Iterator
from dataclasses import dataclass

from k3.errors import ConfigError
from k3.reader import theorems, verdicts, worked
from k3.reader.chapter import Claim

WORDS = {
    "written": ("✎", "the equation stands as code in k3.spec"),
    "executable": ("▷", "this page computes with it: a worked number or a widget"),
    "graphed": ("◇", "a typed graph with symbolic sizes says the same"),
    "proved": ("✓", "a theorem, proved for its scope, wrong variants refuted"),
    "exact": ("=", "what runs equals the equation over the reals, no tolerance"),
    "agrees": ("≈", "what runs agrees with the equation in floats"),
    "runs": ("»", "code of the package that runs is named"),
    "reported only": ("○", "the report says so; nothing here checks it"),
    "stale": ("!", "evidence is missing or older than what it speaks of"),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A status word and what stands behind it."""

    word: str
    detail: str = ""

    @property
    def sign(self) -> str:
        """Told apart without colour."""
        return WORDS[self.word][0]

    @property
    def says(self) -> str:
        """What the word means, and the figures."""
        meaning = WORDS[self.word][1]
        return f"{meaning}: {self.detail}" if self.detail else meaning


def marks(claim: Claim) -> tuple[Mark, ...]:
    """Every status that the evidence of a claim supports, weakest first."""
    try:
        found = tuple(_marks(claim))
    except ConfigError as error:
        return (Mark("stale", str(error)),)
    return found or (Mark("reported only"),)


def _marks(claim: Claim) -> Iterator[Mark]:
    if any(name.startswith("k3.spec.") for name in claim.code):
        yield Mark("written")
    if claim.widget or any(worked.find(claim.text)):
        yield Mark("executable")
    if claim.graph:
        yield Mark("graphed", claim.graph)
    if claim.runs:
        yield Mark("runs", ", ".join(name.split(":")[1] for name in claim.runs))
    if claim.theorems:
        yield _proved(claim)
    if claim.exact:
        yield from _judged(claim.exact)


def _proved(claim: Claim) -> Mark:
    stale = [name for name in claim.theorems if not theorems.fresh(name)]
    if stale:
        return Mark("stale", f"{', '.join(stale)} must be proved again")
    found = [theorems.receipt(name) for name in claim.theorems]
    levels = "/".join(sorted({each["level"] for each in found}))
    return Mark("proved", f"level {levels}; {'; '.join(f['scope'] for f in found)}")


def _judged(name: str) -> Iterator[Mark]:
    found = verdicts.verdict(name)
    if not verdicts.fresh(name):
        yield Mark("stale", f"the verdict {name} is of older code")
        return
    if found["exact"] == "EQUAL":
        yield Mark("exact", found["says"])
    errors = found.get("errors", {})
    if errors and all(each["error"] <= each["allowed"] for each in errors.values()):
        yield Mark("agrees", figures(found))


def figures(verdict: dict[str, dict[str, dict[str, float]]]) -> str:
    """The errors of a verdict by dtype."""
    return ", ".join(
        f"{dtype} {each['error']:.1e} of {each['allowed']:.0e} allowed"
        for dtype, each in verdict["errors"].items()
    )


def badges(claim: Claim) -> str:
    """The marks as list items."""
    return "".join(badge(mark) for mark in marks(claim))


def badge(mark: Mark, *, tag: str = "li") -> str:
    """One mark with its sign, its word and its meaning."""
    detail = ""
    if mark.word in ("proved", "stale") and mark.detail:
        detail = f" {html.escape(mark.detail.split(';')[0])}"
    return (
        f'<{tag} data-status="{mark.word.split()[0]}" title="{html.escape(mark.says)}">'
        f'<span aria-hidden="true">{mark.sign}</span> {mark.word}{detail}</{tag}>'
    )
