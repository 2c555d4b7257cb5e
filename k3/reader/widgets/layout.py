"""A graph laid out in layers, operands above: places and edges, computed at build.

Layers by the longest path from the inputs. An edge over several layers runs through
points of its own, so that it passes beside nodes. Inside a layer the order is by the
mean place of the neighbours, swept down and up (Sugiyama, Tagawa and Toda 1981), and
places are the nearest to those means that keep nodes apart (least squares, by pooling).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from k3.graph.term import Block, Term

WIDTH, HEIGHT, GAP, DROP = 132, 40, 18, 52
# What an edge takes where it passes a layer.
LANE = 12
_SWEEPS = 8
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """The middle of each node by its number, in pixels; edges as (from, to, points)."""

    places: tuple[Point, ...]
    edges: tuple[tuple[int, int, tuple[Point, ...]], ...]
    width: float
    height: float


def lay_out(block: Block) -> Layout:
    """Places of block.nodes, in their order."""
    above = operands(block.nodes)
    depth = _depths(above)
    steps = _chains(above, depth)
    layers = _layers(depth)
    _order(layers, steps)
    xs = _spread(layers, steps, len(above))
    left = min(x - _size(i, len(above)) / 2 for i, x in xs.items()) - GAP / 2
    at = [
        (xs[i] - left, depth[i] * (HEIGHT + DROP) + HEIGHT * 0.75)
        for i in range(len(xs))
    ]
    edges = tuple(
        (a, i, tuple(at[step] for step in steps.lanes[a, i]))
        for i, args in enumerate(above)
        for a in dict.fromkeys(args)
    )
    right = max(x - left + _size(i, len(above)) / 2 for i, x in xs.items()) + GAP / 2
    height = len(layers) * (HEIGHT + DROP) - DROP + HEIGHT / 2
    return Layout(tuple(at[: len(above)]), edges, right, height)


def operands(nodes: Sequence[Term]) -> list[list[int]]:
    """The numbers of each node's operands."""
    ids = {id(node): i for i, node in enumerate(nodes)}
    return [[ids[id(arg)] for arg in node.args] for node in nodes]


@dataclass(frozen=True, slots=True)
class _Steps:
    """Neighbours above and below of nodes and lanes, and the lanes of each edge."""

    above: dict[int, list[int]]
    below: dict[int, list[int]]
    lanes: dict[tuple[int, int], list[int]]


def _depths(above: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each node; an input stands just above the first that reads it."""
    depth = [0] * len(above)
    for i, args in enumerate(above):
        depth[i] = 1 + max((depth[a] for a in args), default=-1)
    readers: dict[int, list[int]] = {}
    for i, args in enumerate(above):
        for a in args:
            readers.setdefault(a, []).append(depth[i])
    for i, args in enumerate(above):
        if not args and i in readers:
            depth[i] = min(readers[i]) - 1
    return depth


def _chains(above: Sequence[Sequence[int]], depth: list[int]) -> _Steps:
    """Lanes for edges over several layers, shared by what reads one node.

    Their layers are appended to `depth`.
    """
    steps = _Steps({}, {}, {})
    lane: dict[tuple[int, int], int] = {}
    for i, args in enumerate(above):
        for a in dict.fromkeys(args):
            path = []
            for level in range(depth[a] + 1, depth[i]):
                if (a, level) not in lane:
                    lane[a, level] = len(depth)
                    depth.append(level)
                path.append(lane[a, level])
            steps.lanes[a, i] = path
            for up, down in zip([a, *path], [*path, i], strict=True):
                if up not in steps.above.setdefault(down, []):
                    steps.above[down].append(up)
                    steps.below.setdefault(up, []).append(down)
    return steps


def _layers(depth: Sequence[int]) -> list[list[int]]:
    layers: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for i, level in enumerate(depth):
        layers[level].append(i)
    return layers


def _order(layers: list[list[int]], steps: _Steps) -> None:
    """Sort each layer by its neighbours' mean place, down and up, in place."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {i: r / len(each) for each in layers for r, i in enumerate(each)}
            links = steps.above if down else steps.below
            layer.sort(key=lambda i: _mean(links.get(i, []), place, i))


def _size(i: int, nodes: int) -> float:
    return WIDTH + GAP if i < nodes else LANE


def _spread(layers: list[list[int]], steps: _Steps, nodes: int) -> dict[int, float]:
    """Places along the layers: near the neighbours' mean, and apart."""
    xs: dict[int, float] = {}
    for layer in layers:
        wanted = [0.0] * len(layer)
        xs |= zip(layer, _apart(layer, wanted, nodes), strict=True)
    for sweep in range(2 * _SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = [
                _mean([*steps.above.get(i, []), *steps.below.get(i, [])], xs, i)
                for i in layer
            ]
            xs |= zip(layer, _apart(layer, wanted, nodes), strict=True)
    return xs


def _apart(layer: Sequence[int], wanted: Sequence[float], nodes: int) -> list[float]:
    """The places in this order nearest to those wanted, each at its distance."""
    offsets, total = [], 0.0
    for i in layer:
        total += _size(i, nodes) / 2
        offsets.append(total)
        total += _size(i, nodes) / 2
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, many = pools.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    return [x + offset for x, offset in zip(flat, offsets, strict=True)]


def _mean(links: Sequence[int], place: Mapping[int, float], own: int) -> float:
    if not links:
        return place[own]
    return sum(place[i] for i in links) / len(links)
