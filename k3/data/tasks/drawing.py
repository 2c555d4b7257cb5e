"""Pictures that are drawn here: a canvas, shapes on it, words in Pillow's own font."""

import random
from typing import TYPE_CHECKING, Any

from k3.data import images

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 56
"""Pixels on a side: four visual tokens."""
COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 180, 60),
    "blue": (60, 90, 230),
    "yellow": (230, 210, 40),
}
KINDS = ("square", "circle")
Shape = tuple[str, str, int, int, int]
"""Kind, colour, left, top, and the length of a side."""


def shape(rng: random.Random) -> Shape:
    """A square or a circle of 12 to 20 pixels, in fours, inside the canvas."""
    side = rng.choice((12, 16, 20))
    left, top = (4 * rng.randint(0, (SIDE - side) // 4) for _ in range(2))
    return rng.choice(KINDS), rng.choice(list(COLOURS)), left, top, side


def paint(shapes: list[Shape]) -> "Image":
    """The shapes in their order on black."""
    picture, pen = _canvas(SIDE, SIDE)
    for kind, colour, left, top, side in shapes:
        box = (left, top, left + side - 1, top + side - 1)
        stroke = pen.rectangle if kind == "square" else pen.ellipse
        stroke(box, fill=COLOURS[colour])
    return picture


def write(text: str, width: int = SIDE, height: int = 28) -> "Image":
    """White letters on black, as large as the height lets them be."""
    from PIL import ImageFont

    picture, pen = _canvas(width, height)
    font = ImageFont.load_default()
    pen.text((2, height // 4), text, fill=(255, 255, 255), font=font)
    return picture


def _canvas(width: int, height: int) -> "tuple[Image, Any]":
    picture = images.pillow().new("RGB", (width, height))
    from PIL import ImageDraw

    return picture, ImageDraw.Draw(picture)
