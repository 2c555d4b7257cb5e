"""Associative recall: pairs of a letter and a letter, then letters are asked for.

All pairs are asked in an order of their own, so that a row of 130 tokens gives 16
answers to learn from. Values differ, so that guessing among them is right once in
`pairs` times.
"""

import string

from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot

PAIRS = 16
ARROW = "->"
"""Two signs, so that the letter behind them is a token by itself."""


def draw(lot: Lot) -> Passage:
    """The pairs, then the keys again in another order, each with its value learned."""
    # Fewer pairs now and then: the way to sixteen begins with a few.
    count = PAIRS if lot.heldout else lot.rng.choice((2, 4, 8, PAIRS))
    keys = lot.rng.sample(string.ascii_lowercase, count)
    values = dict(zip(keys, lot.rng.sample(string.ascii_uppercase, count), strict=True))
    told = ",".join(f" {key}{ARROW}{values[key]}" for key in keys)
    asked = lot.rng.sample(keys, count)
    parts = [(f"Pairs:{told}.\nAsked:", False)]
    for place, key in enumerate(asked):
        parts += [(f"{',' if place else ''} {key}{ARROW}", False), (values[key], True)]
    return Passage(parts=tuple(parts))
