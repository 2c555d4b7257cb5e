"""Short questions with one right answer each, in several wordings.

A fifth of the pairs of fact and wording is held out: the fact was learned in other
words, the wording with other facts.
"""

import itertools

from k3.data.tasks import dialogue
from k3.data.tasks.item import Dialogue
from k3.data.tasks.lot import Lot

_CAPITALS = (
    "Austria Vienna,Chile Santiago,China Beijing,Cuba Havana,Denmark Copenhagen,"
    "Egypt Cairo,England London,France Paris,Germany Berlin,Greece Athens,India Delhi,"
    "Iran Tehran,Italy Rome,Japan Tokyo,Kenya Nairobi,Norway Oslo,Peru Lima,"
    "Poland Warsaw,Portugal Lisbon,Russia Moscow,Spain Madrid,Sweden Stockholm"
)
_OPPOSITES = (
    "big small,hot cold,old new,open closed,fast slow,high low,long short,full empty,"
    "hard soft,light dark,first last,early late,left right,wet dry,true false,"
    "good bad,rich poor,strong weak"
)
_LEGS = "bird two,dog four,cat four,horse four,bee six,ant six,spider eight,cow four"
_COLOURS = (
    "snow white,coal black,grass green,blood red,the sky blue,a lemon yellow,"
    "milk white,a carrot orange"
)
_ORDER = (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "January February March April May June July August September October November "
    "December",
    "one two three four five six seven eight nine ten",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
)
_WORDINGS = {
    "capital": (
        "What is the capital of {}?",
        "Name the capital of {}.",
        "Which city is the capital of {}?",
        "The capital of {}?",
    ),
    "opposite": (
        "What is the opposite of {}?",
        "Name the opposite of {}.",
        "Say the opposite of {}.",
        "The opposite of {}?",
    ),
    "legs": ("How many legs has a {}?", "A {} has how many legs?", "Legs of a {}?"),
    "colour": ("What colour is {}?", "Which colour has {}?", "Name the colour of {}."),
    "after": ("What comes after {}?", "What follows {}?", "After {} comes?"),
    "before": ("What comes before {}?", "What precedes {}?", "Before {} comes?"),
}


def _facts() -> tuple[tuple[str, str, str], ...]:
    tables = (
        ("capital", _CAPITALS),
        ("opposite", _OPPOSITES),
        ("legs", _LEGS),
        ("colour", _COLOURS),
    )
    found = [
        (kind, *pair.rsplit(" ", 1))
        for kind, text in tables
        for pair in text.split(",")
    ]
    for text in _ORDER:
        words = text.split()
        pairs = list(itertools.pairwise(words))
        found += [("after", a, b) for a, b in pairs]
        found += [("before", b, a) for a, b in pairs]
    return tuple((kind, about, answer) for kind, about, answer in found)


FACTS = _facts()


def draw(lot: Lot) -> Dialogue:
    """One fact in one wording."""
    while True:
        kind, about, answer = lot.rng.choice(FACTS)
        asked = lot.rng.choice(_WORDINGS[kind]).format(about)
        if lot.keeps(f"chat:{asked}"):
            break
    answer = answer[0].upper() + answer[1:] if len(answer) > 1 else answer
    return Dialogue(
        messages=[dialogue.user(asked), dialogue.assistant(f"{answer}.")],
        effort=dialogue.effort(lot.rng),
    )
