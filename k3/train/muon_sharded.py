"""Muon over weights in shards: each rank straightens only the matrices it owns.

A parameter lies on the ranks of an axis in runs of its first dim, as FSDP2 splits it.
A matrix that one rank holds whole stays there (experts, and most heads). The others
are given to the ranks with the least work, which fetch just the missing rows and send
them back straightened. Momentum and weights stay where they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from k3.parallel.wire import Parcel, Wire
from k3.train import muon
from k3.train.matrices import Cut
from k3.train.muon import Muon, Part

BUCKET_VALUES = 2**24
"""Values of cut matrices that travel in one exchange, while the last is worked on."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows start .. stop of a parameter's first dim, one matrix of this shape."""

    name: str
    start: int
    stop: int
    shape: tuple[int, int]

    @property
    def cost(self) -> int:
        """Multiplications of one round of Newton-Schulz, about."""
        short, long = sorted(self.shape)
        return short * short * (2 * long + short)


def spans(rows: int, ranks: int) -> list[tuple[int, int]]:
    """The rows that each rank holds: equal runs, the last ones shorter or empty."""
    each = -(-rows // ranks)
    ends = [min(rows, each * i) for i in range(ranks + 1)]
    return list(pairwise(ends))


def listed(name: str, shape: Sequence[int], cut: Cut) -> list[Matrix]:
    """All matrices of a parameter of this whole shape, in the order of its rows."""
    size = (shape[-2], shape[-1])
    if len(shape) > 2:
        return [Matrix(name, i, i + 1, size) for i in range(shape[0])]
    found, start = [], 0
    for rows in cut.sizes * cut.groups:
        found.append(Matrix(name, start, start + rows, (rows, shape[1])))
        start += rows
    return found


def pieces(matrix: Matrix, held: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(rank, first row, end) of every part of a matrix, in the parameter's rows."""
    parts = [
        (rank, max(low, matrix.start), min(high, matrix.stop))
        for rank, (low, high) in enumerate(held)
    ]
    return [(rank, low, high) for rank, low, high in parts if low < high]


def owners(
    matrices: Sequence[Matrix], held: Mapping[str, list[tuple[int, int]]], ranks: int
) -> dict[Matrix, int]:
    """Who straightens which matrix: its only holder, or else who has the least to do.

    Dear ones first; of equally busy ranks one that holds the most of it.
    """
    work, found = [0] * ranks, {}
    split = []
    for matrix in matrices:
        parts = pieces(matrix, held[matrix.name])
        if len(parts) == 1:
            found[matrix] = parts[0][0]
            work[parts[0][0]] += matrix.cost
        else:
            split.append((matrix, parts))
    for matrix, parts in sorted(split, key=lambda pair: -pair[0].cost):
        rows = [0] * ranks
        for rank, low, high in parts:
            rows[rank] = high - low
        owner = min(range(ranks), key=lambda r: (work[r], -rows[r]))
        found[matrix] = owner
        work[owner] += matrix.cost
    return found


class ShardedMuon(Muon):
    """Muon over this rank's rows of parameters whose whole shapes are `shapes`.

    `weights` are the rows held here, plain tensors. Equals Muon on the whole
    parameters; `wire.sent_bytes` counts what went to other ranks.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        cuts: Mapping[str, Cut],
        shapes: Mapping[str, Sequence[int]],
        wire: Wire,
        *,
        decay: float,
        momentum: float = muon.MOMENTUM,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(weights, cuts, decay=decay, momentum=momentum, dtype=dtype)
        self.wire = wire
        self.held = {n: spans(shape[0], wire.size) for n, shape in shapes.items()}
        every = [m for n, cut in cuts.items() for m in listed(n, shapes[n], cut)]
        self.owner = owners(every, self.held, wire.size)
        parts = {m: pieces(m, self.held[m.name]) for m in every}
        self.split = [m for m in every if len(parts[m]) > 1]
        here = wire.rank
        self.local = [m for m in every if [p[0] for p in parts[m]] == [here]]

    @torch.no_grad()
    def step(
        self,
        gradients: Mapping[str, Tensor | None],
        rate: float,
        pool: Executor | None = None,
    ) -> None:
        """Muon.step of the whole parameters, by all ranks of the axis at once.

        Every rank gives the gradients of its rows, None only where all ranks do.
        """
        found = {n: g.contiguous() for n, g in gradients.items() if g is not None}
        live = self._live(found)
        with ThreadPoolExecutor(1) as line:
            buckets = [_Bucket(self, part, found) for part in _buckets(live)]
            coming = [line.submit(b.fetch) for b in buckets[:1]]
            self._step_local(found, rate, pool)
            sent: list[Future[None]] = []
            for i, bucket in enumerate(buckets):
                whole = coming[i].result()
                if i + 1 < len(buckets):
                    coming.append(line.submit(buckets[i + 1].fetch))
                straight = self._straighten(whole)
                self.orthogonalized += len(whole)
                sent.append(line.submit(bucket.give_back, straight, rate))
            for future in sent:
                future.result()

    def rows(self, held: Mapping[str, Tensor], matrix: Matrix) -> Tensor:
        """The part of a matrix that lies here, a view [rows C], perhaps of no rows."""
        low, high = self.held[matrix.name][self.wire.rank]
        first = min(max(matrix.start, low), high) - low
        end = max(min(matrix.stop, high), low) - low
        return held[matrix.name][first : max(first, end)]

    def _live(self, gradients: Mapping[str, Tensor]) -> list[Matrix]:
        """The cut matrices that have a gradient which is not zero, on any rank."""
        matrices = [m for m in self.split if m.name in gradients]
        flags = [bool(self.rows(gradients, m).any()) for m in matrices]
        told = torch.tensor(flags, dtype=torch.int32)
        self.wire.axis.sum_(told)
        return [m for m, count in zip(matrices, told.tolist(), strict=True) if count]

    def _step_local(
        self, gradients: Mapping[str, Tensor], rate: float, pool: Executor | None
    ) -> None:
        by_shape: dict[tuple[int, int], list[Part]] = {}
        held = {n: w.data for n, w in self.weights.items()}
        for m in self.local:
            if m.name in gradients:
                views = [self.rows(x, m) for x in (held, self.moments, gradients)]
                part = Part(*(x.reshape(1, *m.shape) for x in views))
                by_shape.setdefault(m.shape, []).append(part)
        batches = [b for s, parts in by_shape.items() for b in muon.batches(parts, s)]
        move = partial(self._move, rate=rate)
        self.orthogonalized = sum((pool.map if pool else map)(move, batches))

    def _straighten(self, whole: dict[Matrix, Tensor]) -> dict[Matrix, Tensor]:
        """Newton-Schulz of the matrices owned here, equal shapes together."""
        by_shape: dict[tuple[int, int], list[Matrix]] = {}
        for matrix in whole:
            by_shape.setdefault(matrix.shape, []).append(matrix)
        found: dict[Matrix, Tensor] = {}
        for matrices in by_shape.values():
            joined = torch.stack([whole[m] for m in matrices])
            straight = muon.newton_schulz(joined, dtype=self.dtype).to(self.dtype)
            found |= dict(zip(matrices, straight, strict=True))
        return found


class _Bucket:
    """Cut matrices that travel together: their rows to owners, and back."""

    def __init__(
        self,
        optimizer: ShardedMuon,
        matrices: list[Matrix],
        gradients: Mapping[str, Tensor],
    ) -> None:
        self.muon, self.gradients = optimizer, gradients
        ranks, here = range(optimizer.wire.size), optimizer.wire.rank
        owner = optimizer.owner
        self.by_owner = [[m for m in matrices if owner[m] == r] for r in ranks]
        self.own = self.by_owner[here]
        sent = [sum(self._values(m, here) for m in ms) for ms in self.by_owner]
        came = [sum(self._values(m, r) for m in self.own) for r in ranks]
        self.parcel = Parcel("muon", tuple(sent), tuple(came))

    def fetch(self) -> dict[Matrix, Float[Tensor, "R C"]]:
        """Send Nesterov updates of rows to the owners; returns the matrices owned."""
        with torch.no_grad():
            order = [m for ms in self.by_owner for m in ms]
            like = next(iter(self.gradients.values()))
            rows = [self._update(m).flatten() for m in order]
            came = self.muon.wire.move(
                self.parcel, torch.cat([like.new_empty(0), *rows])
            )
        whole: dict[Matrix, list[Tensor]] = {m: [] for m in self.own}
        start = 0
        for rank in range(self.muon.wire.size):
            for m in self.own:
                size = self._values(m, rank)
                whole[m].append(came[start : start + size])
                start += size
        return {m: torch.cat(parts).view(m.shape) for m, parts in whole.items()}

    def give_back(self, straight: dict[Matrix, Tensor], rate: float) -> None:
        """Return straightened rows to their holders, and move the weights held here."""
        rows = [
            straight[m].flatten()[slice(*self._place(m, rank))]
            for rank in range(self.muon.wire.size)
            for m in self.own
        ]
        with torch.no_grad():
            empty = torch.empty(0, dtype=self.muon.dtype)
            came = self.muon.wire.move(self.parcel.back, torch.cat([empty, *rows]))
            held = {n: w.data for n, w in self.muon.weights.items()}
            start = 0
            for m in (m for ms in self.by_owner for m in ms):
                W = self.muon.rows(held, m)
                update = came[start : start + W.numel()].view(W.shape)
                start += W.numel()
                size = rate * muon.update_scale(*m.shape)
                W.mul_(1 - rate * self.muon.decay).sub_(update.to(W.dtype), alpha=size)

    def _update(self, m: Matrix) -> Tensor:
        M, G = (self.muon.rows(x, m) for x in (self.muon.moments, self.gradients))
        after = M.mul_(self.muon.momentum).add_(G)
        return torch.add(G, after, alpha=self.muon.momentum)

    def _place(self, m: Matrix, rank: int) -> tuple[int, int]:
        """Where the rows that a rank holds lie in the flat matrix."""
        low, high = self.muon.held[m.name][rank]
        first = min(max(low, m.start), m.stop) - m.start
        end = max(min(high, m.stop), m.start) - m.start
        return first * m.shape[1], max(first, end) * m.shape[1]

    def _values(self, m: Matrix, rank: int) -> int:
        first, end = self._place(m, rank)
        return end - first


def _buckets(matrices: list[Matrix]) -> Iterator[list[Matrix]]:
    """Cut a list of matrices into exchanges of about BUCKET_VALUES."""
    bucket: list[Matrix] = []
    held = 0
    for m in matrices:
        size = m.shape[0] * m.shape[1]
        if bucket and held + size > BUCKET_VALUES:
            yield bucket
            bucket, held = [], 0
        bucket.append(m)
        held += size
    if bucket:
        yield bucket
