"""Associative recall: pairs of a letter and a letter, then letters are asked for.

Values differ, so that guessing among them is right once in `PAIRS` times. Two things
make it learnable in minutes (measured on the tiny recipe, 2,048 tokens a step). Nothing
stands between a key and its value: with an arrow the loss had not begun to fall after
200 steps. And in training keys are asked again and again: where each is asked once, a
model first learns which values are left, and stays there (loss 1.6 after 400 steps,
against 0.3 after 175).
"""

import string

from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot

PAIRS = 16
ASKED = 24


def draw(lot: Lot) -> Passage:
    """The pairs, then keys again in another order, each with its value learned."""
    # Fewer pairs now and then: the way to sixteen begins with a few.
    count = PAIRS if lot.heldout else lot.rng.choice((2, 4, 8, PAIRS))
    keys = lot.rng.sample(string.ascii_lowercase, count)
    values = lot.rng.sample(string.ascii_uppercase, count)
    table = dict(zip(keys, values, strict=True))
    told = "".join(f" {key}{value}" for key, value in table.items())
    parts = [(f"Pairs:{told}\nAsked:", False)]
    for key in _asked(lot, keys):
        parts += [(f" {key}", False), (table[key], True)]
    return Passage(parts=tuple(parts))


def _asked(lot: Lot, keys: list[str]) -> list[str]:
    """Each key once to measure; to learn, any of them each time."""
    if lot.heldout:
        return lot.rng.sample(keys, len(keys))
    return lot.rng.choices(keys, k=ASKED)
