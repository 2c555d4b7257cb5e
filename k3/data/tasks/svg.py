"""SVG source with its rendering: the picture is given, the source is written."""

from k3.data.tasks import dialogue, drawing
from k3.data.tasks.drawing import Shape
from k3.data.tasks.item import Dialogue
from k3.data.tasks.lot import Lot


def source(shapes: list[Shape]) -> str:
    """The source of a picture: a rectangle or a circle for each shape."""
    side = drawing.SIDE
    lines = [f'<svg width="{side}" height="{side}">', *map(_element, shapes), "</svg>"]
    return "\n".join(lines)


def _element(shape: Shape) -> str:
    kind, colour, left, top, side = shape
    if kind == "square":
        place = f'x="{left}" y="{top}" width="{side}" height="{side}"'
        return f'<rect {place} fill="{colour}"/>'
    half = side // 2
    place = f'cx="{left + half}" cy="{top + half}" r="{half}"'
    return f'<circle {place} fill="{colour}"/>'


def draw(lot: Lot) -> Dialogue:
    """One or two shapes as a picture, and the SVG that draws them."""
    shapes = [drawing.shape(lot.rng) for _ in range(lot.rng.randint(1, 2))]
    content = [{"type": "image"}, {"type": "text", "text": "Write this as SVG."}]
    return Dialogue(
        messages=[dialogue.user(content), dialogue.assistant(source(shapes))],
        effort=dialogue.effort(lot.rng),
        pictures=[drawing.paint(shapes)],
    )
