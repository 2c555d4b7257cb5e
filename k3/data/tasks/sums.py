"""Modular sums: the remainder of a few numbers' sum."""

from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot

MODULI = (3, 5, 7)


def draw(lot: Lot) -> Passage:
    """Sums one after another under one modulus, every remainder learned.

    A sum of three numbers is held out by the hash of its text.
    """
    modulus = lot.rng.choice(MODULI)
    parts: list[tuple[str, bool]] = [(f"Modulo {modulus}:", False)]
    for _ in range(1 if lot.heldout else 12):
        numbers = _numbers(lot, modulus)
        text = "+".join(map(str, numbers))
        parts += [(f" {text} =", False), (f" {sum(numbers) % modulus}", True)]
    return Passage(parts=tuple(parts))


def _numbers(lot: Lot, modulus: int) -> list[int]:
    while True:
        numbers = [lot.rng.randrange(10) for _ in range(3)]
        if lot.keeps(f"sums:{modulus}:{numbers}"):
            return numbers
