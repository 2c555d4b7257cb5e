"""Documents about a made-up world: who lives where, what flows into what."""

import random

from k3.data.corpora.document import Document
from k3.data.tasks import words
from k3.envs.documents.facts import SENTENCES

PEOPLE, TOWNS, LANDS, RIVERS, SEAS = 10, 6, 3, 4, 2
DOCUMENTS = 12
IDLE = (
    "Nobody remembers when {} was last seen in the market.",
    "The letters of {} were never answered.",
    "It is said that {} is older than the oldest map.",
    "Few songs are sung about {} in winter.",
)


def people(rng: random.Random) -> tuple[list[str], list[Document]]:
    """Some people as topics, and twelve documents in which all is said once."""
    names = words.several(rng, PEOPLE + TOWNS + LANDS + RIVERS + SEAS)
    given = iter(names)
    who, towns, lands, rivers, seas = (
        [next(given) for _ in range(count)]
        for count in (PEOPLE, TOWNS, LANDS, RIVERS, SEAS)
    )
    links = [
        *(("town", one, rng.choice(towns)) for one in who),
        *(("teacher", one, rng.choice(who)) for one in who),
        *(("river", town, rng.choice(rivers)) for town in towns),
        *(("land", town, rng.choice(lands)) for town in towns),
        *(("sea", river, rng.choice(seas)) for river in rivers),
        *(("ruler", land, rng.choice(who)) for land in lands),
    ]
    sentences = [SENTENCES[r].format(subject=s, value=v) for r, s, v in links if s != v]
    sentences += [rng.choice(IDLE).format(name) for name in names for _ in range(2)]
    rng.shuffle(sentences)
    return who, _documents(rng, sentences)


def _documents(rng: random.Random, sentences: list[str]) -> list[Document]:
    """The sentences in twelve parts, two or three to a line."""
    found = []
    for number in range(DOCUMENTS):
        own = sentences[number::DOCUMENTS]
        lines = []
        while own:
            count = rng.randint(2, 3)
            lines.append(" ".join(own[:count]))
            own = own[count:]
        found.append(Document(name=f"note-{number + 1}", text="\n".join(lines)))
    return found
