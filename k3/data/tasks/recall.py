"""Associative recall: pairs of a letter and a letter, then letters are asked for.

All pairs are asked in an order of their own, so that a short row gives many answers to
learn from. Values differ, so that guessing among them is right once in `PAIRS` times.
Nothing stands between a key and its value: with an arrow between them the same model
had not begun to learn when without it it had (measured at 200 steps).
"""

import string

from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot

PAIRS = 16


def draw(lot: Lot) -> Passage:
    """The pairs, then the keys again in another order, each with its value learned."""
    # Fewer pairs now and then: the way to sixteen begins with a few.
    count = PAIRS if lot.heldout else lot.rng.choice((2, 4, 8, PAIRS))
    keys = lot.rng.sample(string.ascii_lowercase, count)
    values = lot.rng.sample(string.ascii_uppercase, count)
    table = dict(zip(keys, values, strict=True))
    told = "".join(f" {key}{value}" for key, value in table.items())
    parts = [(f"Pairs:{told}\nAsked:", False)]
    for key in lot.rng.sample(keys, count):
        parts += [(f" {key}", False), (table[key], True)]
    return Passage(parts=tuple(parts))
