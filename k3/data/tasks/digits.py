"""Handwritten digits as pictures, and the question which digit it is.

1,797 digits of 8 x 8 pixels, 17 levels of ink, kept in `k3/assets/digits`. A fifth
is held out, by the hash of its place in the file.
"""

import gzip
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from k3.data import images
from k3.data.tasks import dialogue
from k3.data.tasks.item import Dialogue, Passage
from k3.data.tasks.lot import Lot, Split, is_heldout

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE, SCALE, CANVAS = 8, 3, 28
INK_MAX = 16
CAPTIONED = 0.6
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


def draw(lot: Lot) -> Dialogue | Passage:
    """A question about a digit; of those to train on half are rows of captions."""
    if not lot.heldout and lot.rng.random() < CAPTIONED:
        return _captions(lot)
    turns = 1 if lot.heldout else lot.rng.randint(1, 3)
    messages, pictures = [], []
    for _ in range(turns):
        image, answer = _shown(lot)
        content = [{"type": "image"}, {"type": "text", "text": lot.rng.choice(ASKED)}]
        messages += [dialogue.user(content), dialogue.assistant(answer)]
        pictures.append(image)
    return Dialogue(
        messages=messages, effort=dialogue.effort(lot.rng), pictures=pictures
    )


def _captions(lot: Lot) -> Passage:
    """Pictures, each with its digit behind it: much to learn and little to read."""
    parts: list[tuple[Any, bool]] = []
    for _ in range(lot.rng.randint(4, 12)):
        image, answer = _shown(lot)
        parts += [(image, False), (answer, True)]
    return Passage(parts=tuple(parts))


def _shown(lot: Lot) -> "tuple[Image, str]":
    """A digit of the split, shifted in training by up to two pixels, and its name."""
    kept, moved = places(lot.split), [CENTRE, CENTRE]
    # Of the held-out ones each in its turn.
    index = kept[lot.index % len(kept)] if lot.heldout else lot.rng.choice(kept)
    if not lot.heldout:
        moved = [lot.rng.randint(0, 2 * CENTRE) for _ in range(2)]
    return picture(index, *moved), str(table()[1][index])
