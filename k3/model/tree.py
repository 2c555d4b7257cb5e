"""Token trees: several continuations of each sequence verified in one pass.

A node sees its context and its ancestors. MLA appends the rows of all nodes and lets
each attend to those that are its own; KDA's memory has no such mask, so every node has
a memory made from its parent's, depth by depth. Of what is kept nothing is a memory:
the projected inputs of the nodes, from which the accepted path is replayed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.errors import ShapeError
from k3.kernels import kda
from k3.model import inputs
from k3.model.cache import KDACache, MLACache
from k3.model.decode_state import Cache, DecodeState
from k3.model.inputs import Inputs
from k3.model.model import Model
from k3.model.taps import Taps, in_step

Parents = Sequence[int]
"""The parent of each node of one sequence, before it in order; -1 for the context."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of all sequences, one after the other, by their numbers in that order.

    `owner` is a node's sequence, `slot` its number among those of its sequence,
    `parent` a node or -1, `levels` the nodes of each depth.
    """

    owner: Int[Tensor, " n"]
    slot: Int[Tensor, " n"]
    parent: Int[Tensor, " n"]
    levels: tuple[Int[Tensor, " level"], ...]
    paths: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]

    @staticmethod
    def of(trees: Sequence[Parents]) -> "Nodes":
        """Number the nodes of each sequence's tree.

        `paths` are the slots from each node's first ancestor to itself, `starts` the
        first node of each sequence and the count of all.
        Raises: ShapeError where a node comes before its parent.
        """
        paths: list[tuple[int, ...]] = []
        owner, slot, parent, starts = [], [], [], [0]
        for row, parents in enumerate(trees):
            for node, above in enumerate(parents):
                if not -1 <= above < node:
                    raise ShapeError(
                        f"a node comes after its parent: got node {node} under {above}"
                        "; number them by depth, -1 above the first"
                    )
                path = paths[starts[-1] + above] if above >= 0 else ()
                paths.append((*path, node))
                owner.append(row)
                slot.append(node)
                parent.append(starts[-1] + above if above >= 0 else -1)
            starts.append(len(paths))
        depth = torch.tensor([len(path) for path in paths])
        most = max(map(len, paths), default=0)
        levels = tuple((depth == d).nonzero()[:, 0] for d in range(1, most + 1))
        return Nodes(
            owner=torch.tensor(owner, dtype=torch.long),
            slot=torch.tensor(slot, dtype=torch.long),
            parent=torch.tensor(parent, dtype=torch.long),
            levels=levels,
            paths=tuple(paths),
            starts=tuple(starts),
        )

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(slots=True)
class TreeRows(MLACache):
    """The rows of contexts and nodes, one a page; a node is a sequence of its own."""

    places: Int[Tensor, " n"] | None = None

    @staticmethod
    def over(cache: MLACache, nodes: Nodes, which: Tensor | None = None) -> "TreeRows":
        """Let nodes, all or `which` of them, branch off the sequences of a cache.

        Their rows are written behind the contexts, which `cache` goes on holding alone.
        """
        assert cache.table is None, "a context's rows lie in order"
        widest = max((len(path) for path in nodes.paths), default=0)
        most = max(end - start for start, end in pairwise(nodes.starts))
        cache._reserve(max(cache.lens) + most)
        cache.rows, page = cache.rows.contiguous(), cache.rows.shape[1]
        picked = range(len(nodes)) if which is None else which.tolist()
        table, lens, places = [], [], []
        for node in picked:
            row, path = int(nodes.owner[node]), nodes.paths[node]
            n = cache.lens[row]
            seen = [*range(n), *(n + slot for slot in path)]
            lens.append(len(seen))
            places.append(row * page + seen[-1])
            seen += [0] * (max(cache.lens) + widest - len(seen))
            table.append([row * page + at for at in seen])
        device = cache.rows.device
        pool = cache.rows.flatten(0, 1)[:, None]
        at = torch.tensor(table, device=device)
        return TreeRows(pool, tuple(lens), at, torch.tensor(places, device=device))

    def append(
        self, new: Float[Tensor, "n 1 row"], lens: tuple[int, ...] | None = None
    ) -> None:
        """Write each node's row where its descendants look for it."""
        assert lens is None
        self.rows[self.places] = new.to(self.rows.dtype)


@dataclass(slots=True)
class TreeKDA(KDACache):
    """Memories of nodes: each is its parent's after one token more."""

    nodes: Nodes | None = None
    new: Inputs | None = None

    @staticmethod
    def over(cache: KDACache, nodes: Nodes) -> "TreeKDA":
        """Let nodes branch off the memories of a cache, which stay as they are."""
        # A cache that keeps inputs is read through `read`: nothing is fused around it.
        return TreeKDA(cache.state, cache.window, 1, nodes=nodes)

    def before(self, raw: Float[Tensor, "n 1 C"]) -> Float[Tensor, "n past C"]:
        """Return each node's convolution window: what its last ancestors took."""
        assert self.nodes is not None
        parent, windows = self.nodes.parent, self.window[self.nodes.owner]
        for level in self.nodes.levels[1:]:
            above = parent[level]
            taken = torch.cat([windows[above], raw[above].to(windows.dtype)], 1)
            windows[level] = taken[:, 1:]
        return windows

    def read(
        self,
        q: Float[Tensor, "n 1 H K"],
        new: Inputs,
        window: Tensor,
        lens: tuple[int, ...] | None,
    ) -> Float[Tensor, "n 1 H V"]:
        """Return what each node's query reads of the memory with the node in it."""
        assert self.nodes is not None
        nodes, self.new = self.nodes, new
        out = torch.empty_like(new.v)
        place = torch.zeros(len(nodes), dtype=torch.long)
        given = [x[:, 0] for x in (q, *new.tensors()[1:])]
        state = self.state
        for depth, level in enumerate(nodes.levels):
            above = place[nodes.parent[level]] if depth else nodes.owner[level]
            them = [x[level] for x in given]
            read, state = kda.step(*them, state=state[above])
            out[level, 0] = read
            place[level] = torch.arange(len(level))
        return out


class Forest:
    """A pass over a tree of tokens behind each sequence of a state, which it spends."""

    def __init__(self, model: Model, state: DecodeState, trees: Sequence[Parents]):
        state.check(len(trees), model.weight_version)
        self.model, self.lens, self.nodes = model, state.lens, Nodes.of(trees)
        self._keep, self._version = state.keep_inputs, state.weight_version
        self._held = state.take()
        self._over: list[TreeRows | TreeKDA] = []

    def run(
        self, ids: Int[Tensor, " n"], taps: Taps | None = None
    ) -> Float[Tensor, "n W"]:
        """Logits after every node; `taps` as `Model.step` fills them, of [n 1 D]."""
        language = self.model.language_model
        found: Taps | None = None if taps is None else {}
        self._over = [_over(cache, self.nodes) for cache in self._held]
        x = language.embed(ids.to(self.model.device)[:, None])
        x = language.model(x, list(self._over), None, found)
        out = language.lm_head(x)[:, 0]
        if taps is not None and found is not None:
            taps.update(in_step(found))
        return out if out.dtype == torch.float64 else out.float()

    def take(self, paths: Sequence[Sequence[int]]) -> DecodeState:
        """The state after the nodes of each sequence's path, by their slots.

        A state that keeps as many inputs may be taken back to where the forest began.
        """
        counts = tuple(len(path) for path in paths)
        pairs = zip(self._held, self._over, strict=True)
        caches = [self._taken(cache, over, paths) for cache, over in pairs]
        lens = tuple(n + m for n, m in zip(self.lens, counts, strict=True))
        kept = counts if max(counts) <= self._keep else (0,) * len(counts)
        return DecodeState(caches, lens, self._keep, kept, self._version)

    def _taken(
        self, cache: Cache, over: "TreeRows | TreeKDA", paths: Sequence[Sequence[int]]
    ) -> Cache:
        if isinstance(cache, MLACache):
            for row, path in enumerate(paths):
                n = cache.lens[row]
                cache.rows[row, n : n + len(path)] = cache.rows[
                    row, [n + slot for slot in path]
                ]
            counts = zip(cache.lens, paths, strict=True)
            cache.lens = tuple(n + len(path) for n, path in counts)
            return cache
        assert isinstance(over, TreeKDA)
        assert over.new is not None
        counts_ = tuple(len(path) for path in paths)
        cache.base = cache.state, cache.window
        cache.kept, cache.counts = self._inputs(over.new, paths), counts_
        cache.state, cache.window = inputs.replay(cache.base, cache.kept, counts_)
        if max(counts_) > cache.keep:
            cache.forget()
        return cache

    def _inputs(self, new: Inputs, paths: Sequence[Sequence[int]]) -> Inputs:
        """What the nodes of each path took, as wide as the longest path."""
        most = max(map(len, paths))
        starts = self.nodes.starts
        at = [
            [start + slot for slot in path] + [start] * (most - len(path))
            for start, path in zip(starts, paths, strict=False)
        ]
        return Inputs(*(x[:, 0][torch.tensor(at)] for x in new.tensors()))


def _over(cache: Cache, nodes: Nodes) -> TreeRows | TreeKDA:
    if isinstance(cache, MLACache):
        return TreeRows.over(cache, nodes)
    return TreeKDA.over(cache, nodes)
