"""Filters: which documents are worth reading. A filter is any function of a text.

Source of the two rules, not of their numbers: Rae et al. 2021 (Gopher), A.1.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from k3.data.corpora import Document


class Filter(Protocol):
    """Says in a few words why a text is left out; None keeps it."""

    def __call__(self, text: str) -> str | None:
        """The reason, or None."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prose:
    """Text that is made of words: enough of them, of usual length, mostly letters."""

    min_words: int = 20
    max_word_length: float = 12.0
    min_letters: float = 0.6

    def __call__(self, text: str) -> str | None:
        """Why a text is no prose."""
        words = text.split()
        if len(words) < self.min_words:
            return f"fewer than {self.min_words} words"
        letters = sum(character.isalpha() for character in text)
        written = sum(map(len, words))
        if letters < self.min_letters * written:
            return f"less than {self.min_letters:.0%} letters"
        if written > self.max_word_length * len(words):
            return f"words of more than {self.max_word_length:g} characters"
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Repetition:
    """Text that says most things once: few lines stand in it several times."""

    max_share: float = 0.3

    def __call__(self, text: str) -> str | None:
        """Why a text says one thing too often."""
        counts = Counter(line.strip() for line in text.splitlines() if line.strip())
        size = sum(len(line) * count for line, count in counts.items())
        again = sum(len(line) * (count - 1) for line, count in counts.items())
        if again > self.max_share * size:
            return f"more than {self.max_share:.0%} repeated lines"
        return None


@dataclass(frozen=True, slots=True)
class Judged:
    """Documents that stay, and how many each reason left out."""

    documents: tuple[Document, ...]
    reasons: dict[str, int]


def judge(documents: Sequence[Document], filters: Sequence[Filter]) -> Judged:
    """The documents that no filter leaves out; the first reason counts."""
    kept: list[Document] = []
    reasons: Counter[str] = Counter()
    for document in documents:
        found = (reason for each in filters if (reason := each(document.text)))
        reason = next(found, None)
        if reason is None:
            kept.append(document)
        else:
            reasons[reason] += 1
    return Judged(tuple(kept), dict(reasons))
