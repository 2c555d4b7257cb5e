"""Handwritten digits as pictures, and the question which digit it is.

1,797 digits of 8 x 8 pixels, 17 levels of ink, kept in `k3/assets/digits`. A fifth
is held out, by the hash of its place in the file.
"""

import gzip
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from k3.data import images
from k3.data.tasks import dialogue
from k3.data.tasks.item import Dialogue
from k3.data.tasks.lot import Lot, Split, is_heldout

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE, SCALE, CANVAS = 8, 3, 28
INK_MAX = 16
CENTRE = (CANVAS - SIDE * SCALE) // 2
ASKED = (
    "Which digit is this?",
    "What digit is in the picture?",
    "Read the digit.",
    "Which number do you see?",
)


@cache
def table() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Ink [1797 8 8] from 0 to 16, and which digit each one is."""
    file = resources.files("k3") / "assets" / "digits" / "digits.txt.gz"
    lines = gzip.decompress(file.read_bytes()).decode().split()
    rows = np.array([[int(level, INK_MAX + 1) for level in line] for line in lines])
    rows = rows.astype(np.uint8)
    return rows[:, :-1].reshape(-1, SIDE, SIDE), rows[:, -1]


@cache
def places(side: Split) -> tuple[int, ...]:
    """The digits of a split, as places in the file."""
    held = side == "heldout"
    count = len(table()[1])
    return tuple(i for i in range(count) if is_heldout(f"digit:{i}") == held)


def picture(index: int, right: int = CENTRE, down: int = CENTRE) -> "Image":
    """The digit in white on black, three pixels for one, with its corner there."""
    ink = table()[0][index].astype(np.int64) * 255 // INK_MAX
    canvas = np.zeros((CANVAS, CANVAS), np.uint8)
    grown = ink.repeat(SCALE, 0).repeat(SCALE, 1).astype(np.uint8)
    canvas[down : down + len(grown), right : right + len(grown)] = grown
    return images.pillow().fromarray(canvas).convert("RGB")


def _chosen(lot: Lot) -> int:
    """Any digit to train on; of the held-out ones each in its turn."""
    kept = places(lot.split)
    return kept[lot.index % len(kept)] if lot.heldout else lot.rng.choice(kept)


def draw(lot: Lot) -> Dialogue:
    """One digit and its name; in training up to three turns, shifted by two pixels."""
    turns = 1 if lot.heldout else lot.rng.randint(1, 3)
    messages, pictures = [], []
    for _ in range(turns):
        index, moved = _chosen(lot), [CENTRE, CENTRE]
        if not lot.heldout:
            moved = [lot.rng.randint(0, 2 * CENTRE) for _ in range(2)]
        content = [{"type": "image"}, {"type": "text", "text": lot.rng.choice(ASKED)}]
        answer = str(table()[1][index])
        messages += [dialogue.user(content), dialogue.assistant(answer)]
        pictures.append(picture(index, *moved))
    return Dialogue(
        messages=messages, effort=dialogue.effort(lot.rng), pictures=pictures
    )
