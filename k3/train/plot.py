"""Curves as an SVG picture, without a library: what a run, a sweep or a table shows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Six that differ for every kind of sight; more curves repeat them, dashed."""

WIDTH, HEIGHT = 680.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 16.0, 34.0, 46.0
LEGEND_COLUMNS, LEGEND_LINE = 3, 18
MOST_POINTS = 1500

Point = tuple[float | int, float | int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Points (x, y) in rising x, joined by a line, or as dots alone."""

    name: str
    points: Sequence[Point]
    dots: bool = False
    colour: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """What an axis shows, and whether each step along it is a factor."""

    label: str
    log: bool = False


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values between low and high to places between start and end."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high, at = (self._turned(v) for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def _turned(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self) -> list[float]:
        """Round values inside: about five steps, or the powers of ten."""
        if self.log:
            return _powers(self.low, self.high)
        step = _round_step((self.high - self.low) / 7)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def chart(title: str, curves: Sequence[Curve], *, x: Axis, y: Axis) -> str:
    """Return an SVG document; values that are not finite, or no logarithm, are left."""
    shown = [(curve, _shown(curve.points, x, y)) for curve in curves]
    points = [p for _, kept in shown for p in kept]
    across = _scale([p[0] for p in points], x, LEFT, WIDTH - RIGHT)
    up = _scale([p[1] for p in points], y, HEIGHT - BOTTOM, TOP)
    parts = [_frame(title, x, y), _grid(across, up)]
    for i, (curve, kept) in enumerate(shown):
        parts += [_curve(i, curve, kept, across, up), _legend(i, curve)]
    height = HEIGHT + LEGEND_LINE * -(-len(curves) // LEGEND_COLUMNS)
    size = f'viewBox="0 0 {WIDTH:g} {height:g}"'
    size += f' width="{WIDTH:g}" height="{height:g}"'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
        f'font-family="sans-serif" font-size="12">\n<title>{escape(title)}</title>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _shown(points: Sequence[Point], x: Axis, y: Axis) -> list[tuple[float, float]]:
    """The points that can be drawn, thinned where there are more than pixels."""

    def drawable(value: float, axis: Axis) -> bool:
        return math.isfinite(value) and (value > 0 or not axis.log)

    pairs = [(float(a), float(b)) for a, b in points]
    kept = [(a, b) for a, b in pairs if drawable(a, x) and drawable(b, y)]
    every = -(-len(kept) // MOST_POINTS) or 1
    return kept[::every]


def _scale(values: list[float], axis: Axis, start: float, end: float) -> _Scale:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if axis.log:
        low, high = (low / 1.15, high * 1.15) if values else (1.0, 10.0)
    else:
        room = 0.04 * (high - low) or max(abs(high), 1.0) * 0.5
        low, high = low - room, high + room
    return _Scale(low, high, start, end, axis.log)


def _round_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * (1 - 1e-9))


def _powers(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        found = [f * 10.0**d for d in decades for f in factors]
        found = [value for value in found if low <= value <= high]
        if len(found) > 2:
            break
    return found


def _frame(title: str, x: Axis, y: Axis) -> str:
    middle = (LEFT + WIDTH - RIGHT) / 2
    level = (TOP + HEIGHT - BOTTOM) / 2
    return (
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>\n'
        f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x.label)}</text>\n"
        f'<text transform="translate(14 {level:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y.label)}</text>'
    )


def _grid(across: _Scale, up: _Scale) -> str:
    lines = []
    for value in across.ticks():
        place = f"{across(value):.1f}"
        lines.append(
            f'<path d="M{place} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
            f'<text x="{place}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" '
            f'fill="#444">{_said(value)}</text>'
        )
    for value in up.ticks():
        at = up(value)
        lines.append(
            f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" '
            f'fill="#444">{_said(value)}</text>'
        )
    return "\n".join(lines)


def _said(value: float) -> str:
    if value and not 1e-3 <= abs(value) < 1e5:
        return (
            f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
        )
    return f"{value:.6g}"


def _look(i: int, curve: Curve) -> tuple[str, str]:
    """Colour and dashes of a curve."""
    number = i if curve.colour is None else curve.colour
    dashes = ' stroke-dasharray="5 3"' if number >= len(COLOURS) else ""
    return COLOURS[number % len(COLOURS)], dashes


def _curve(i: int, curve: Curve, kept: list[Point], across: _Scale, up: _Scale) -> str:
    colour, dashes = _look(i, curve)
    places = [f"{across(x):.1f} {up(y):.1f}" for x, y in kept]
    if curve.dots:
        return "\n".join(
            f'<circle cx="{at.split()[0]}" cy="{at.split()[1]}" r="4" fill="{colour}"/>'
            for at in places
        )
    path = "L".join(places)
    return (
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>'
        if places
        else ""
    )


def _legend(i: int, curve: Curve) -> str:
    colour, dashes = _look(i, curve)
    row, column = divmod(i, LEGEND_COLUMNS)
    y = HEIGHT + 8 + LEGEND_LINE * row
    x = LEFT + (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS * column
    mark = (
        f'<circle cx="{x + 12}" cy="{y - 4}" r="4" fill="{colour}"/>'
        if curve.dots
        else f'<path d="M{x} {y - 4}h24" stroke="{colour}" stroke-width="2"{dashes}/>'
    )
    return f'{mark}<text x="{x + 30}" y="{y}">{escape(curve.name)}</text>'
