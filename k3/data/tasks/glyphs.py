"""Rendered text: a made-up word as a picture, to be read."""

from k3.data.tasks import dialogue, drawing, words
from k3.data.tasks.item import Dialogue
from k3.data.tasks.lot import Lot

ASKED = ("Read the word.", "Which word is this?", "What is written there?")


def draw(lot: Lot) -> Dialogue:
    """A picture of a word and the word; a fifth of the words is held out."""
    while True:
        word = words.word(lot.rng)
        if lot.keeps(f"glyphs:{word}"):
            break
    content = [{"type": "image"}, {"type": "text", "text": lot.rng.choice(ASKED)}]
    return Dialogue(
        messages=[dialogue.user(content), dialogue.assistant(word)],
        effort=dialogue.effort(lot.rng),
        pictures=[drawing.write(word)],
    )
