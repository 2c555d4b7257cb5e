"""Topics expanded into sub-questions: a directed graph without cycles, nodes shared.

A node asks for one relation of one subject. What it finds is the subject of the nodes
behind it; topics that lead to the same subject lead to the same node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from k3.envs.documents.facts import Fact

Key = tuple[str, str]
"""A node by its subject and its relation."""
Path = tuple[Fact, ...]
"""Facts that follow each other, from a topic on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """Nodes by key, and the keys of those behind each."""

    topics: tuple[str, ...]
    nodes: Mapping[Key, Fact]
    behind: Mapping[Key, tuple[Key, ...]]

    def roots(self, topic: str) -> list[Key]:
        """The nodes that ask of a topic itself."""
        return [key for key in self.nodes if key[0] == topic]

    def parents(self) -> dict[Key, int]:
        """How many nodes lead to each node."""
        counts = dict.fromkeys(self.nodes, 0)
        for after in self.behind.values():
            for key in after:
                counts[key] += 1
        return counts

    def paths(self, depth: int) -> list[Path]:
        """All paths of so many nodes that begin at a topic."""
        roots = [root for topic in self.topics for root in self.roots(topic)]
        return [path for root in roots for path in self._from(root, depth)]

    def _from(self, key: Key, depth: int) -> Iterator[Path]:
        if depth == 1:
            yield (self.nodes[key],)
            return
        for after in self.behind[key]:
            for path in self._from(after, depth - 1):
                yield (self.nodes[key], *path)


def expand(topics: Sequence[str], facts: Mapping[Key, Fact], depth: int) -> Graph:
    """The graph of these topics, `depth` nodes deep at most from the nearest topic.

    An edge that would close a cycle is left out. The same topics and facts give the
    same graph.
    """
    by_subject: dict[str, list[Key]] = {}
    for key in facts:
        by_subject.setdefault(key[0], []).append(key)
    nodes: dict[Key, Fact] = {}
    behind: dict[Key, list[Key]] = {}
    layer = [key for topic in topics for key in by_subject.get(topic, ())]
    for left in range(depth, 0, -1):
        following: list[Key] = []
        for key in dict.fromkeys(layer):
            if key in nodes:
                continue
            nodes[key], behind[key] = facts[key], []
            following += by_subject.get(facts[key].value, ()) if left > 1 else ()
        layer = following
    for key, fact in nodes.items():
        for after in by_subject.get(fact.value, ()):
            if after in nodes and not _reaches(after, key, behind):
                behind[key].append(after)
    return Graph(
        topics=tuple(topics),
        nodes=nodes,
        behind={key: tuple(after) for key, after in behind.items()},
    )


def asked(path: Path) -> str:
    """The sub-questions of a path as one: the c of the b of the a of the topic."""
    relations = [fact.relation for fact in reversed(path)]
    return "the " + " of the ".join(relations) + f" of {path[0].subject}"


def passages(paths: Iterable[Path]) -> list[str]:
    """What must be cited: the passage of each node once."""
    return list(dict.fromkeys(fact.passage for path in paths for fact in path))


def _reaches(start: Key, end: Key, behind: Mapping[Key, Sequence[Key]]) -> bool:
    seen, left = {start}, [start]
    while left:
        key = left.pop()
        if key == end:
            return True
        fresh = [after for after in behind[key] if after not in seen]
        seen.update(fresh)
        left += fresh
    return False
