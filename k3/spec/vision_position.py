"""Positions of MoonViT-V2: a stretched table, a time embedding, and 2-D rotations."""

from fractions import Fraction

from k3.spec import ops
from k3.spec.ops import Array

Grid = tuple[int, int, int]


def source(i: int, size: int, table: int) -> tuple[int, int, Fraction]:
    """Bilinear: the two table rows of output row i of `size`, and the second's share.

    The source coordinate is max(0, (i + 1/2) table / size - 1/2); both rows are
    clamped to the table (align_corners false, no antialiasing).
    """
    at = max(Fraction(0), Fraction(2 * i + 1, 2) * table / size - Fraction(1, 2))
    low = min(int(at), table - 1)
    return low, min(low + 1, table - 1), at - low


def stretch(table: Array, h: int, w: int) -> Array:
    """The position table [H W D] at the size of a grid, [h*w D]; itself if equal."""
    rows = []
    for r in range(h):
        top, bottom, down = source(r, h, len(table))
        for c in range(w):
            left, right, across = source(c, w, table.shape[1])
            y, x = ops.lift(table, down), ops.lift(table, across)
            upper = table[top, left] * (1 - x) + table[top, right] * x
            lower = table[bottom, left] * (1 - x) + table[bottom, right] * x
            rows.append(upper * (1 - y) + lower * y)
    return ops.stack(rows)


def power(like: Array, base: int, exponent: Fraction) -> Array:
    """base^exponent on the carrier of `like`, as exp(exponent log base)."""
    return ops.exp(ops.lift(like, exponent) * ops.log(ops.lift(like, base)))


def time(like: Array, frames: int, width: int) -> Array:
    """Time embedding: [sin | cos] of frame * 10000^(-i / (D/2)). [t D], D even."""
    half = width // 2
    rates = [power(like, 10000, Fraction(-i, half)) for i in range(half)]
    angles = ops.matrix(like, [[f * rate for rate in rates] for f in range(frames)])
    return ops.concat([ops.sin(angles), ops.cos(angles)], axis=1)


def embedding(table: Array, grid: Grid) -> Array:
    """What embed adds: the stretched table, and the time if there are frames. [N D].

    The article's is a table of the grid's size and a learned row for each frame.
    """
    t, h, w = grid
    places = stretch(table, h, w)
    if t == 1:
        return places
    moments = time(table[0], t, table.shape[2])
    return ops.concat([places + moments[f][None, :] for f in range(t)])


def angles(like: Array, grid: Grid, size: int) -> Array:
    """Rotation angles of head channels [d], d a multiple of 4: [N d/2].

    Slot 2i turns by column * 10000^(-4i/d), slot 2i + 1 by row * the same; every frame
    alike. The released comment says rows first, its code columns first.
    """
    t, h, w = grid
    rates = [power(like, 10000, Fraction(-4 * i, size)) for i in range(size // 4)]
    rows = [
        [place * rate for rate in rates for place in (c, r)]
        for _ in range(t)
        for r in range(h)
        for c in range(w)
    ]
    return ops.matrix(like, rows)


def rotate(x: Array, turn: Array) -> Array:
    """Adjacent channels (a, b) by an angle: (a cos - b sin, a sin + b cos). [N d]."""
    pairs = ops.reshape(x, len(x), -1, 2)
    a, b, c, s = pairs[:, :, 0], pairs[:, :, 1], ops.cos(turn), ops.sin(turn)
    both = ops.stack([a * c - b * s, a * s + b * c], axis=2)
    return ops.reshape(both, len(x), -1)
