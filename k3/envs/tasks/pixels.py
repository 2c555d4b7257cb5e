"""Pictures in plain Python: load, crop, zoom, measure, show.

It is placed in sandboxes as pixels.py and runs under any Python 3 without packages.

    import pixels
    p = pixels.load("picture.ppm")
    p.crop(10, 20, 64, 48).zoom(4).show("detail")   # comes back as a picture
    p.at(10, 20), p.parts("red"), p.box("blue")
"""

import os
import struct
import zlib

COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 180, 60),
    "blue": (60, 90, 230),
    "yellow": (230, 210, 40),
    "white": (255, 255, 255),
}
NEAR = 24
Box = tuple[int, int, int, int]
"""First and last column and row that belong: left, top, right, bottom."""


class Picture:
    """Pixels in rows, three bytes each."""

    def __init__(self, width: int, height: int, data: bytes) -> None:
        self.width, self.height, self.data = width, height, data

    def at(self, x: int, y: int) -> tuple[int, ...]:
        """Red, green and blue of a pixel."""
        start = 3 * (y * self.width + x)
        return tuple(self.data[start : start + 3])

    def crop(self, left: int, top: int, width: int, height: int) -> "Picture":
        """A part of it, as far as there is any."""
        left, top = max(0, left), max(0, top)
        width, height = min(width, self.width - left), min(height, self.height - top)
        rows = [
            self.data[3 * (y * self.width + left) : 3 * (y * self.width + left + width)]
            for y in range(top, top + height)
        ]
        return Picture(width, height, b"".join(rows))

    def zoom(self, factor: int) -> "Picture":
        """So many pixels each way for one."""
        rows = []
        for y in range(self.height):
            row = self.data[3 * y * self.width : 3 * (y + 1) * self.width]
            wide = b"".join(row[at : at + 3] * factor for at in range(0, len(row), 3))
            rows.append(wide * factor)
        return Picture(self.width * factor, self.height * factor, b"".join(rows))

    def parts(self, colour: str) -> "list[Box]":
        """Where a colour is: a box for each connected part, from top left on."""
        red, green, blue = COLOURS[colour]
        data = self.data
        # Inline, since a call for each pixel would take most of the time.
        left = {
            (at // 3 % self.width, at // 3 // self.width)
            for at in range(0, len(data), 3)
            if abs(data[at] - red) <= NEAR
            and abs(data[at + 1] - green) <= NEAR
            and abs(data[at + 2] - blue) <= NEAR
        }
        found = []
        while left:
            found.append(_grown(left.pop(), left))
        return sorted(found, key=lambda box: (box[1], box[0]))

    def box(self, colour: str) -> "Box | None":
        """The box around all of a colour."""
        boxes = self.parts(colour)
        if not boxes:
            return None
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        return min(lefts), min(tops), max(rights), max(bottoms)

    def is_(self, colour: str, x: int, y: int) -> bool:
        """Whether a pixel has about this colour."""
        pairs = zip(self.at(x, y), COLOURS[colour], strict=True)
        return all(abs(own - wanted) <= NEAR for own, wanted in pairs)

    def show(self, name: str = "view") -> None:
        """Have it come back with what was printed."""
        os.makedirs("show", exist_ok=True)
        rows = [
            b"\0" + self.data[3 * y * self.width : 3 * (y + 1) * self.width]
            for y in range(self.height)
        ]
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        body = zlib.compress(b"".join(rows))
        with open(f"show/{name}.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")
            for kind, data in ((b"IHDR", head), (b"IDAT", body), (b"IEND", b"")):
                check = zlib.crc32(kind + data)
                file.write(struct.pack(">I", len(data)) + kind + data)
                file.write(struct.pack(">I", check))


def load(path: str = "picture.ppm") -> Picture:
    """The picture of a file of the kind P6."""
    with open(path, "rb") as file:
        kind, width, height, rest = file.read().split(None, 3)
    # One blank ends the head: the bytes behind it may be blanks too.
    most, data = rest[:4].rstrip(), rest[4:]
    if (kind, most) != (b"P6", b"255"):
        raise ValueError(f"{path} is no P6 file of 255 levels")
    return Picture(int(width), int(height), data)


def _grown(start: "tuple[int, int]", left: "set[tuple[int, int]]") -> Box:
    """The box of what is connected to a pixel, which is taken out of what is left."""
    ready, xs, ys = [start], [start[0]], [start[1]]
    while ready:
        x, y = ready.pop()
        for near in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if near in left:
                left.remove(near)
                ready.append(near)
                xs.append(near[0])
                ys.append(near[1])
    return min(xs), min(ys), max(xs), max(ys)
