"""Frames of a clip that show something new: a difference hash of each.

Source: N. Krawetz, "Kind of Like That" (2013), the difference hash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from k3.data import images

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 8
BITS, LEVELS = 6, 12


@dataclass(frozen=True, slots=True)
class Print:
    """64 bits that say where a picture grows brighter to the right, and its mean level.

    The level is there because flat pictures of any brightness have the same bits.
    """

    bits: int
    level: float

    def distance(self, other: "Print") -> int:
        """In how many of the 64 bits two prints differ."""
        return (self.bits ^ other.bits).bit_count()

    def near(self, other: "Print", bits: int = BITS, levels: float = LEVELS) -> bool:
        """Whether two pictures look the same, up to noise, scale and compression."""
        close = abs(self.level - other.level) <= levels
        return close and self.distance(other) <= bits


def hashed(picture: "Image") -> Print:
    """The difference hash of a picture, of any size and mode."""
    grey = picture.convert("L")
    box = images.pillow().Resampling.BOX
    small = np.asarray(grey.resize((SIDE + 1, SIDE), box), np.int64)
    brighter = (small[:, 1:] > small[:, :-1]).flatten()
    bits = int.from_bytes(np.packbits(brighter).tobytes(), "big")
    return Print(bits, float(small.mean()))


def distinct(
    frames: "Sequence[Image]", bits: int = BITS, levels: float = LEVELS
) -> list[int]:
    """Places of the frames that do not look like the last one that was taken."""
    places: list[int] = []
    last: Print | None = None
    for place, frame in enumerate(frames):
        found = hashed(frame)
        if last is None or not found.near(last, bits, levels):
            places.append(place)
            last = found
    return places
