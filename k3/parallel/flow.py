"""Micro-batches through the stages of a pipeline, forward and backward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from k3.data.packing import Row
from k3.kernels import precision
from k3.parallel.layout import Chunk
from k3.parallel.pipeline import Seen, Stage
from k3.parallel.ranks import Axis
from k3.parallel.schedule import Action

Notice = Callable[[int, Tensor | None, Seen], None]
"""notice(micro, loss on the last stage, seen): told after each forward pass."""


@dataclass(slots=True)
class Micro:
    """What a rank keeps of one micro-batch between its passes.

    `blocks` are all depth blocks the rank has had, `gradients` what later passes have
    found for them. `open` holds inputs and outputs of chunks that wait for backward.
    """

    blocks: Tensor | None = None
    gradients: Tensor | None = None
    open: dict[int, tuple[tuple[Tensor, ...], tuple[Tensor, ...]]] = field(
        default_factory=dict
    )


@dataclass(slots=True)
class Flow:
    """One step of a stage. Sums gradients into the parameters' `grad`.

    Neighbours are those of `axis`; messages carry the number of chunk and micro-batch
    as a tag, and sends do not wait. `sent_bytes` counts them.
    """

    stage: Stage
    axis: Axis
    rows: Sequence[Row]
    notice: Notice
    pictures: Sequence[bool] = ()
    dtype: torch.dtype = torch.float32
    sent_bytes: int = 0
    _micros: list[Micro] = field(init=False)
    _width: int = field(init=False)
    _sending: list[tuple[dist.Work | None, Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._micros = [Micro() for _ in self.rows]
        self._width = self.stage.model.config.text.hidden_size

    def run(self, actions: Sequence[Action]) -> None:
        """Do what a schedule says for this rank, and wait for the last send."""
        for action in actions:
            if action.kind == "forward":
                self._forward(action.chunk, action.micro)
            else:
                self._backward(action.chunk, action.micro)
        for work, _ in self._sending:
            if work is not None:
                work.wait()

    def _forward(self, index: int, m: int) -> None:
        chunk, row, micro = self.stage.chunks[index], self.rows[m], self._micros[m]
        given = None
        if not chunk.first:
            given = self._arrived(chunk, m, micro)
        seen = Seen(pictures=bool(self.pictures) and self.pictures[m])
        outputs = self.stage(index, row, seen, given)
        micro.open[index] = given or (), outputs
        self.notice(m, outputs[0].detach() if chunk.last else None, seen)
        if chunk.last:
            return
        made, prefix = outputs[0].detach(), outputs[1].detach()
        parts = [x for x in (micro.blocks, made) if x is not None]
        micro.blocks = torch.cat(parts, -2)
        tag, peer = self._tag(chunk.number, m), self.axis.rank + 1
        if chunk.sent:
            self._send(micro.blocks[..., -chunk.sent :, :], peer, tag)
        self._send(prefix, peer, tag + 1)

    def _arrived(self, chunk: Chunk, m: int, micro: Micro) -> tuple[Tensor, Tensor]:
        """Take what the chunk before has sent; its inputs are leaves."""
        ids, peer = self.rows[m].ids, self.axis.rank - 1
        tag = self._tag(chunk.number - 1, m)
        like = ids.new_empty((), dtype=self.dtype)
        prefix = like.new_empty(*ids.shape, self._width)
        if chunk.received:
            size = *ids.shape, chunk.received, self._width
            blocks = precision.wide(like).new_empty(size)
            self._receive(blocks, peer, tag)
            parts = [x for x in (micro.blocks, blocks) if x is not None]
            micro.blocks = torch.cat(parts, -2)
        self._receive(prefix, peer, tag + 1)
        assert micro.blocks is not None
        leaf = micro.blocks.detach().requires_grad_()
        return leaf, prefix.requires_grad_()

    def _backward(self, index: int, m: int) -> None:
        chunk, micro = self.stage.chunks[index], self._micros[m]
        given, outputs = micro.open.pop(index)
        if chunk.last:
            outputs[0].backward()
        else:
            self._pull(chunk, m, micro, outputs)
        if chunk.first:
            return
        blocks, prefix = given
        assert blocks.grad is not None
        assert prefix.grad is not None
        found = blocks.grad
        if micro.gradients is not None:
            found = found + micro.gradients[..., : chunk.held, :]
        tag, peer = self._tag(chunk.number, m) + 2, self.axis.rank - 1
        if chunk.received:
            self._send(found[..., -chunk.received :, :], peer, tag)
        self._send(prefix.grad, peer, tag + 1)
        micro.gradients = found[..., : chunk.held - chunk.received, :]

    def _pull(
        self, chunk: Chunk, m: int, micro: Micro, outputs: tuple[Tensor, ...]
    ) -> None:
        """Take the gradients of what was sent, add those of later chunks, go back."""
        made, prefix = outputs
        tag, peer = self._tag(chunk.number + 1, m) + 2, self.axis.rank + 1
        total = made.new_zeros(*made.shape[:-2], chunk.held + chunk.made, self._width)
        if chunk.sent:
            back = torch.empty_like(total[..., -chunk.sent :, :])
            self._receive(back, peer, tag)
            total[..., -chunk.sent :, :] += back
        if micro.gradients is not None:
            total[..., : micro.gradients.shape[-2], :] += micro.gradients
        slope = torch.empty_like(prefix)
        self._receive(slope, peer, tag + 1)
        micro.gradients = total
        if made.shape[-2]:
            torch.autograd.backward(
                [made, prefix], [total[..., chunk.held :, :], slope]
            )
        else:
            prefix.backward(slope)

    def _tag(self, number: int, m: int) -> int:
        """Four tags for a chunk and micro-batch: blocks, sum, and their gradients."""
        return 4 * (number * len(self.rows) + m)

    def _send(self, x: Tensor, peer: int, tag: int) -> None:
        x = x.contiguous()
        self.sent_bytes += x.numel() * x.element_size()
        to = self.axis.peer(peer % self.axis.size)
        self._sending = [s for s in self._sending if s[0] and not s[0].is_completed()]
        self._sending.append((dist.isend(x, to, tag=tag), x))

    def _receive(self, x: Tensor, peer: int, tag: int) -> None:
        dist.recv(x, self.axis.peer(peer % self.axis.size), tag=tag)
