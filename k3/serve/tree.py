"""The shape of a token tree: how many candidates are proposed behind each, as data."""

from collections.abc import Sequence
from dataclasses import dataclass

from k3.errors import RequestError

MAX_NODES = 64
"""Nodes of a tree: each is a token that the target verifies."""


@dataclass(frozen=True, slots=True)
class Tree:
    """`parents` name for each candidate the earlier one that it follows.

    -1 stands for the context. The shape is fixed: one chosen by what was drawn would
    change the law of what is emitted.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what is no tree."""
        count = len(self.parents)
        ordered = all(-1 <= above < n for n, above in enumerate(self.parents))
        if not ordered or not 1 <= count <= MAX_NODES:
            raise RequestError(
                f"a tree has 1 to {MAX_NODES} candidates, each behind an earlier one "
                f"or -1: got {count}, {self.parents!s:.80}; lower its branching"
            )

    @staticmethod
    def of(given: Sequence[int] | Sequence[Sequence[int]]) -> "Tree":
        """The tree of a branching for each depth, or of its paths.

        [3, 2, 1] has three candidates, two behind each, one behind each of those. A
        path names a candidate by its rank at each depth: [[0], [1], [0, 0]].
        Raises: RequestError for anything else.
        """
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise _no_tree(given)
        if all(isinstance(n, int) and not isinstance(n, bool) for n in given):
            counts: list[int] = [n for n in given if isinstance(n, int)]
            return _branching(counts)
        if not all(isinstance(path, Sequence) and path for path in given):
            raise _no_tree(given)
        return _paths([tuple(path) for path in given if isinstance(path, Sequence)])

    @property
    def depth(self) -> int:
        """Candidates on its longest path."""
        return max(self._depths())

    def cut(self, depth: int) -> "Tree":
        """Return what is at most so deep, at least 1."""
        near = [n for n, d in enumerate(self._depths()) if d <= depth]
        place = {node: n for n, node in enumerate((-1, *near), -1)}
        return Tree(tuple(place[self.parents[node]] for node in near))

    def below(self) -> dict[int, list[int]]:
        """The candidates behind each one that has any, and behind the context (-1)."""
        found: dict[int, list[int]] = {}
        for node, above in enumerate(self.parents):
            found.setdefault(above, []).append(node)
        return found

    def _depths(self) -> list[int]:
        found: list[int] = []
        for above in self.parents:
            found.append(1 + (found[above] if above >= 0 else 0))
        return found


def _branching(counts: Sequence[int]) -> Tree:
    parents, level = list[int](), [-1]
    for count in counts:
        if not 1 <= count <= MAX_NODES or len(level) * count > MAX_NODES:
            raise _no_tree(counts)
        above = [node for node in level for _ in range(count)]
        level = [*range(len(parents), len(parents) + len(above))]
        parents += above
    return Tree(tuple(parents))


def _paths(paths: Sequence[tuple[int, ...]]) -> Tree:
    place: dict[tuple[int, ...], int] = {(): -1}
    for path in sorted(paths, key=lambda path: (len(path), path)):
        earlier = (*path[:-1], path[-1] - 1) if path[-1] else path[:-1]
        if path in place or earlier not in place:
            raise _no_tree(paths)
        place[path] = len(place) - 1
    return Tree(tuple(place[path[:-1]] for path in place if path))


def _no_tree(given: object) -> RequestError:
    return RequestError(
        "a token tree is a branching for each depth, as [3, 2, 1], or its paths, as "
        f"[[0], [1], [0, 0]], with at most {MAX_NODES} candidates: got {given!r:.80}"
    )
