"""Questions composed along paths of a graph of facts, over made-up documents.

Difficulty is depth: one to four facts that follow each other, and every fifth
question joins two paths. The documents are made anew for each instance.
"""

from k3.data.tasks.lot import Lot, Split
from k3.envs.documents import expand, facts, world
from k3.envs.documents.expand import Path
from k3.envs.documents.library import Library
from k3.envs.tasks import reading
from k3.envs.tasks.reading import Reading

DOMAIN = "research"
DEEPEST = 4
TOPICS = 4


def make(split: Split, index: int) -> Reading:
    """A question over a world of its own; its words are held out by their hash."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        who, documents = world.people(lot.rng)
        found = [
            fact for document in documents for fact in facts.of_sentences(document)
        ]
        topics = who[:TOPICS]
        graph = expand.expand(topics, facts.unambiguous(found), DEEPEST)
        paths = choose(lot, graph, 1 + index % DEEPEST, 2 if index % 5 == 4 else 1)
        if paths:
            break
    return reading.of_paths(paths, Library(documents), facts.of_sentences)


def choose(lot: Lot, graph: expand.Graph, depth: int, count: int) -> tuple[Path, ...]:
    """Paths of this depth that belong to the split, or none where there are too few."""
    kept = [
        path
        for path in graph.paths(depth)
        if lot.keeps(f"{DOMAIN}:{expand.asked(path)}")
    ]
    return tuple(lot.rng.sample(kept, count)) if len(kept) >= count else ()
