"""A needle at a depth: one sentence among many, asked for at the end."""

from k3.data.tasks import words
from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot

DEPTHS = 5
"""Depths from first to last, each in its turn by the index."""
FILLERS = (
    "The road goes on to the next hill.",
    "Nobody had seen the lamp since noon.",
    "A wind came over the water.",
    "They counted the boats again.",
    "The clock in the hall was slow.",
    "Rain fell on the old roof.",
)


def depth(index: int) -> float:
    """How far down the needle of this index lies: 0 for the top, 1 for the end."""
    return index % DEPTHS / (DEPTHS - 1)


def draw(lot: Lot) -> Passage:
    """Sentences, the code of one name between them, and the question for it."""
    count = lot.rng.randint(8, 24)
    lines = [lot.rng.choice(FILLERS) for _ in range(count)]
    name, code = words.several(lot.rng, 2)
    lines.insert(round(depth(lot.index) * count), f"The code of {name} is {code}.")
    text = " ".join(lines)
    return Passage(
        parts=((f"{text}\nThe code of {name} is", False), (f" {code}", True))
    )
