"""Copy: made-up words, then the same words again."""

from k3.data.tasks import words
from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot


def draw(lot: Lot) -> Passage:
    """Four to sixteen words and their copy, which is learned."""
    count = lot.rng.randint(4, 16)
    text = " ".join(words.word(lot.rng) for _ in range(count))
    return Passage(parts=((f"Copy: {text}\nAgain:", False), (f" {text}", True)))
