"""Localization: where a shape lies, in pixels or in units of the picture's side."""

from k3.data.tasks import dialogue, drawing
from k3.data.tasks.item import Dialogue
from k3.data.tasks.lot import Lot


def draw(lot: Lot) -> Dialogue:
    """A shape, and the centre of it: absolute whole pixels, or units to a hundredth."""
    found = drawing.shape(lot.rng)
    kind, colour, left, top, side = found
    centre = left + side // 2, top + side // 2
    unit = lot.rng.random() < 0.5
    asked = "in units of the side" if unit else "in pixels"
    if unit:
        answer = ", ".join(f"{x / drawing.SIDE:.2f}" for x in centre)
    else:
        answer = ", ".join(map(str, centre))
    text = f"Where is the centre of the {colour} {kind}, {asked}?"
    content = [{"type": "image"}, {"type": "text", "text": text}]
    return Dialogue(
        messages=[dialogue.user(content), dialogue.assistant(f"({answer})")],
        effort=dialogue.effort(lot.rng),
        pictures=[drawing.paint([found])],
    )
