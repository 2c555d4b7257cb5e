"""How text is cut into pieces before byte-pair encoding."""

import re
from collections.abc import Iterator

# Only this many specials-free characters reach the expression at once.
MAX_CHUNK_CHARS = 400_000
MAX_RUN_CHARS = 25_000

# Eight alternatives, first match wins: a Han run; a word that ends in lower case;
# a word of capitals; up to three digits; punctuation; line ends; the spaces before
# a word's own space; spaces. `&&` is set intersection, so letters exclude Han.
_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join(
    (
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_ENDING}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

_RUN = re.compile(r"\s+|\S+")


def chunks(text: str) -> Iterator[str]:
    """The long-input rules: bounded chunks whose join is `text`.

    Cut every 400,000 characters, then inside a run of one whitespace class after
    every 25,000 characters of it. Cost: linear in the text.
    """
    for start in range(0, len(text), MAX_CHUNK_CHARS):
        yield from _runs(text[start : start + MAX_CHUNK_CHARS])


def _runs(text: str) -> Iterator[str]:
    if len(text) <= MAX_RUN_CHARS:
        yield text
        return
    start = 0
    for run in _RUN.finditer(text):
        for cut in range(run.start() + MAX_RUN_CHARS, run.end(), MAX_RUN_CHARS):
            yield text[start:cut]
            start = cut
    yield text[start:]
