"""Made-up words, of which there are more than a model could remember."""

import random

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


def word(rng: random.Random, syllables: int = 2) -> str:
    """A word of so many syllables, a consonant and a vowel each."""
    return "".join(
        rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(syllables)
    )


def several(rng: random.Random, count: int) -> list[str]:
    """Words that differ from each other."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[word(rng)] = None
    return list(found)
