"""Scenes to look at: shapes, some of a few pixels, on a dark and uneven ground."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3.data import images
from k3.data.tasks.drawing import COLOURS, KINDS, Shape

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH, HEIGHT = 240, 180
SMALLEST, LARGEST = 6, 24
CELL, CELLS = 3, 5
WHITE = (255, 255, 255)
_DARK = bytes(level & 31 for level in range(256))


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Shapes, a question about them, its answer, and how far a number may be off."""

    shapes: tuple[Shape, ...]
    question: str
    right: str
    off: int = 0
    strip: tuple[str, ...] = ()
    strip_at: tuple[int, int] = (0, 0)


def draw(rng: random.Random, kind: int) -> Scene:
    """A scene with the question of this number."""
    return QUESTIONS[kind % len(QUESTIONS)](rng)


def paint(scene: Scene, rng: random.Random) -> "Image":
    """The picture of a scene."""
    from PIL import ImageDraw

    noise = rng.randbytes(3 * WIDTH * HEIGHT).translate(_DARK)
    picture: Image = images.pillow().frombytes("RGB", (WIDTH, HEIGHT), noise)
    pen = ImageDraw.Draw(picture)
    for kind, colour, left, top, side in scene.shapes:
        box = (left, top, left + side - 1, top + side - 1)
        stroke = pen.rectangle if kind == "square" else pen.ellipse
        stroke(box, fill=COLOURS[colour])
    if scene.strip:
        left, top = scene.strip_at
        frame = (left, top, left + CELL * CELLS + 1, top + CELL + 1)
        pen.rectangle(frame, fill=WHITE)
        for at, colour in enumerate(scene.strip):
            first = left + 1 + CELL * at
            cell = (first, top + 1, first + CELL - 1, top + CELL)
            pen.rectangle(cell, fill=COLOURS[colour])
    return picture


def _placed(rng: random.Random, wanted: list[tuple[str, str]]) -> tuple[Shape, ...]:
    """Shapes of these kinds and colours, two pixels or more from each other."""
    found: list[Shape] = []
    for kind, colour in wanted:
        while True:
            side = rng.randint(SMALLEST, LARGEST)
            left, top = rng.randrange(WIDTH - side), rng.randrange(HEIGHT - 30 - side)
            shape = (kind, colour, left, top, side)
            if not any(_touch(shape, other) for other in found):
                found.append(shape)
                break
    return tuple(found)


def _touch(one: Shape, other: Shape) -> bool:
    across = _gap(one[2], one[4], other[2], other[4])
    return max(across, _gap(one[3], one[4], other[3], other[4])) < 2


def _gap(start: int, size: int, other: int, other_size: int) -> int:
    """Pixels between two ranges; negative where they overlap."""
    return max(start - other - other_size, other - start - size)


def _any(rng: random.Random) -> tuple[str, str]:
    return rng.choice(KINDS), rng.choice(list(COLOURS))


def _count(rng: random.Random) -> Scene:
    asked = _any(rng)
    others = [pair for pair in (_any(rng) for _ in range(8)) if pair != asked]
    number = rng.randint(3, 9)
    wanted = [asked] * number + others
    rng.shuffle(wanted)
    return Scene(
        shapes=_placed(rng, wanted),
        question=f"How many {asked[1]} {asked[0]}s are there?",
        right=str(number),
    )


def _distance(rng: random.Random) -> Scene:
    pairs = [(kind, colour) for kind in KINDS for colour in COLOURS]
    shapes = _placed(rng, rng.sample(pairs, 6))
    one, other = shapes[:2]
    # A side counts pixels, so that equal sides cancel and half pixels stay.
    wider = (one[4] - other[4]) / 2
    across, down = one[2] - other[2] + wider, one[3] - other[3] + wider
    return Scene(
        shapes=shapes,
        question=f"How many pixels is the centre of the {one[1]} {one[0]} from that of "
        f"the {other[1]} {other[0]}, to the nearest whole number?",
        right=str(round(math.hypot(across, down))),
        off=1,
    )


def _largest(rng: random.Random) -> Scene:
    colour = rng.choice(list(COLOURS))
    own = [("square", colour)] * rng.randint(2, 4)
    others = [pair for pair in (_any(rng) for _ in range(6)) if pair[1] != colour]
    shapes = _placed(rng, own + others)
    sides = [side for kind, shade, *_, side in shapes if shade == colour]
    return Scene(
        shapes=shapes,
        question=f"How many pixels wide is the largest {colour} square?",
        right=str(max(sides)),
    )


def _strip(rng: random.Random) -> Scene:
    strip = tuple(rng.choice(list(COLOURS)) for _ in range(CELLS))
    place = rng.randrange(WIDTH - CELL * CELLS - 2), HEIGHT - rng.randint(10, 26)
    return Scene(
        shapes=_placed(rng, [_any(rng) for _ in range(8)]),
        question=f"A strip of {CELLS} cells, each {CELL} pixels wide, is framed white."
        " Which colours have its cells, from left to right, with a comma between?",
        right=", ".join(strip),
        strip=strip,
        strip_at=place,
    )


QUESTIONS: tuple[Callable[[random.Random], Scene], ...] = (
    _count,
    _distance,
    _largest,
    _strip,
)
