"""Exchanges between the ranks of an axis: counted, and followed by autograd.

Several tensors go in one exchange, so that the ranks, which may use different ones of
what they got, still run its backward pass at the same place.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.parallel.ranks import Axis


@dataclass(frozen=True, slots=True)
class Parcel:
    """What goes where: rows sent to each rank and rows that come from each."""

    name: str
    sent: tuple[int, ...]
    came: tuple[int, ...]

    @property
    def back(self) -> "Parcel":
        """The way of the gradients."""
        return Parcel(self.name, self.came, self.sent)


@dataclass(frozen=True, slots=True, eq=False)
class Wire:
    """An axis, and the bytes that this rank has sent to others, by their name."""

    axis: Axis
    sent_bytes: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """Ranks of the axis."""
        return self.axis.size

    @property
    def rank(self) -> int:
        """This one among them."""
        return self.axis.rank

    def exchange(self, parcels: Sequence[Parcel], *rows: Tensor) -> tuple[Tensor, ...]:
        """Send rows [n ...] of each tensor to each rank; returns what came, in order.

        Gradients go back the same way: what went to several ranks gets their sum.
        """
        return _Exchange.apply(self, tuple(parcels), *rows)

    def move(self, parcel: Parcel, rows: Tensor) -> Tensor:
        """Do one exchange that autograd does not see."""
        own = parcel.sent[self.rank]
        each = math.prod(rows.shape[1:])
        others = (len(rows) - own) * each * rows.element_size()
        self.sent_bytes[parcel.name] += others
        if self.axis.group is None:
            return rows.clone()
        came = rows.new_empty(sum(parcel.came), *rows.shape[1:])
        # Bytes, because not every backend knows every dtype.
        flat, into = (x.contiguous().view(len(x), each) for x in (rows, came))
        dist.all_to_all_single(
            into.view(torch.uint8),
            flat.view(torch.uint8),
            list(parcel.came),
            list(parcel.sent),
            group=self.axis.group,
        )
        return came

    def gather(self, name: str, x: Tensor) -> Tensor:
        """Return x of every rank, [R ...], in order; autograd does not see it."""
        self.sent_bytes[name] += (self.size - 1) * x.numel() * x.element_size()
        if self.axis.group is None:
            return x[None].clone()
        flat = x.detach().contiguous().view(-1)
        out = flat.new_empty(self.size * len(flat))
        dist.all_gather_single(out, flat, group=self.axis.group)
        return out.view(self.size, *x.shape)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, wire: Wire, parcels: tuple[Parcel, ...], *rows: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.wire, ctx.parcels = wire, parcels
        pairs = zip(parcels, rows, strict=True)
        return tuple(wire.move(parcel, x) for parcel, x in pairs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *found: Tensor) -> tuple[Tensor | None, ...]:
        # Every one of them, needed or not: the other ranks count on it.
        pairs = zip(ctx.parcels, found, strict=True)
        return (None, None, *(ctx.wire.move(p.back, x) for p, x in pairs))
