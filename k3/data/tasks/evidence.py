"""Evidence scattered over documents: an answer that needs a line of two of them."""

from k3.data.tasks import words
from k3.data.tasks.item import Passage
from k3.data.tasks.lot import Lot

PEOPLE = 4


def draw(lot: Lot) -> Passage:
    """Documents of lines in any order; who is in a town, what a town lies in."""
    found = words.several(lot.rng, 3 * PEOPLE)
    people, towns, lands = (found[i : i + PEOPLE] for i in range(0, len(found), PEOPLE))
    lines = [f"{who} lives in {town}." for who, town in zip(people, towns, strict=True)]
    lines += [f"{town} is in {land}." for town, land in zip(towns, lands, strict=True)]
    lot.rng.shuffle(lines)
    cut = len(lines) // 4
    documents = [lines[i : i + cut] for i in range(0, len(lines), cut)]
    text = "\n\n".join(
        f"Document {n}\n" + "\n".join(document)
        for n, document in enumerate(documents, 1)
    )
    asked = lot.rng.randrange(PEOPLE)
    question = f"\n\nThe land of {people[asked]} is"
    return Passage(parts=((text + question, False), (f" {lands[asked]}", True)))
