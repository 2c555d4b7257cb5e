"""A graph laid out in layers, operands above: places of nodes, computed at build.

Layers by the longest path from the inputs; inside a layer by the mean place of the
neighbours, swept down and up, as Sugiyama, Tagawa and Toda (1981) do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from k3.graph.term import Block, Term

WIDTH, HEIGHT, GAP, DROP = 132, 40, 18, 62
_SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Layout:
    """The middle of each node by its number, and the size of the whole, in pixels."""

    places: tuple[tuple[float, float], ...]
    width: float
    height: float


def lay_out(block: Block) -> Layout:
    """Places of block.nodes, in their order."""
    nodes = block.nodes
    above = operands(nodes)
    layers = _layers(nodes, above)
    _order(layers, above)
    width = max(len(layer) for layer in layers) * (WIDTH + GAP)
    places = [(0.0, 0.0)] * len(nodes)
    for depth, layer in enumerate(layers):
        start = (width - len(layer) * (WIDTH + GAP)) / 2
        for rank, node in enumerate(layer):
            x = start + (rank + 0.5) * (WIDTH + GAP)
            places[node] = (x, depth * (HEIGHT + DROP) + HEIGHT)
    return Layout(tuple(places), width, len(layers) * (HEIGHT + DROP) + GAP)


def operands(nodes: Sequence[Term]) -> list[list[int]]:
    """The numbers of each node's operands."""
    ids = {id(node): i for i, node in enumerate(nodes)}
    return [[ids[id(arg)] for arg in node.args] for node in nodes]


def _layers(nodes: Sequence[Term], above: Sequence[Sequence[int]]) -> list[list[int]]:
    """Nodes by depth; an input stands just above the first node that reads it."""
    depth = [0] * len(nodes)
    for i, args in enumerate(above):
        depth[i] = 1 + max((depth[a] for a in args), default=-1)
    below: dict[int, list[int]] = {}
    for i, args in enumerate(above):
        for a in args:
            below.setdefault(a, []).append(i)
    for i, args in enumerate(above):
        if not args and i in below:
            depth[i] = min(depth[b] for b in below[i]) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for i, d in enumerate(depth):
        layers[d].append(i)
    return [layer for layer in layers if layer]


def _order(layers: list[list[int]], above: Sequence[Sequence[int]]) -> None:
    """Sort each layer by its neighbours' mean place, down and up, in place."""
    near: dict[int, list[int]] = {i: list(args) for i, args in enumerate(above)}
    under: dict[int, list[int]] = {}
    for i, args in enumerate(above):
        for a in args:
            under.setdefault(a, []).append(i)
    for sweep in range(_SWEEPS):
        links = near if sweep % 2 == 0 else under
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            place = _places(layers)
            layer.sort(key=lambda i: _mean(links.get(i, []), place, i))


def _places(layers: Sequence[Sequence[int]]) -> Mapping[int, float]:
    return {i: r - len(layer) / 2 for layer in layers for r, i in enumerate(layer)}


def _mean(links: Sequence[int], place: Mapping[int, float], own: int) -> float:
    if not links:
        return place[own]
    return sum(place[i] for i in links) / len(links)
