"""Weights that only answer: read from the files layer by layer through two buffers.

A frozen policy for a KL, or a teacher, needs no memory of its own for its layers: one
buffer computes while the next layer is read into the other.
"""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from k3.checkpoint import load, locate, places, version
from k3.checkpoint.source import Source
from k3.checkpoint.survey import survey
from k3.config import K3Config
from k3.errors import RequestError
from k3.model import Model

ALIGNED = 64
"""Where a tensor may begin in a buffer: as memory of its own would."""


@contextmanager
def streamed(
    directory: str | os.PathLike[str],
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    experts: str = "packed",
) -> Iterator[Model]:
    """The model of a directory, of which two layers at a time are in memory.

    Its answers are those of `checkpoint.load` bit for bit; it has no gradients and no
    layer of further prediction. One pass runs at a time, others wait for it.
    Raises: what `checkpoint.load` raises; RequestError for mapped experts, which are
    in the files already.
    """
    if experts not in ("packed", "dequantized"):
        raise RequestError(
            f"streamed experts are 'packed' or 'dequantized': got {experts!r}"
        )
    folder = locate.locate(directory)
    found = survey(folder, K3Config.load(folder))
    packed = found.experts == "packed" and experts == "packed"
    with places.Unfilled():
        model = Model(
            found.config,
            dtype=dtype or torch.bfloat16,
            device="meta",
            experts="packed" if packed else "dequantized",
        ).requires_grad_(False)
    decode = found.experts == "packed" and not packed
    with Source(found.tensors) as source, ThreadPoolExecutor(1) as reader:
        layers = _Layers(model, source, reader, decode=decode)
        layers.fill_rest(torch.device(device))
        layers.make_buffers(torch.device(device))
        layers.watch()
        model.weight_version = version.weight_version(found)
        yield model


class _Layers:
    """Which layer each of the two buffers holds, and which is being read."""

    def __init__(
        self,
        model: Model,
        source: Source,
        reader: ThreadPoolExecutor,
        *,
        decode: bool,
    ) -> None:
        self.model, self.source, self.reader = model, source, reader
        self.decode = decode
        self.decoder = model.language_model.model
        del self.decoder.layers[self.decoder.num_layers :]
        self.names: list[list[str]] = [[] for _ in self.decoder.layers]
        self.rest: list[str] = []
        for name in source.in_order():
            self._sort(name)
        self._held = [-1, -1]
        self._reading: Future[None] | None = None
        self._passing = threading.Lock()

    def _sort(self, name: str) -> None:
        """Put a name to its layer, or to what is always held."""
        _, found, behind = places.in_model(self.model.config, name).partition(
            "language_model.model.layers."
        )
        number = int(behind.partition(".")[0]) if found else -1
        if number < len(self.names):
            (self.names[number] if found else self.rest).append(name)

    def fill_rest(self, device: torch.device) -> None:
        """Give all but the layers its memory, and read it."""
        inside = {id(m) for layer in self.decoder.layers for m in layer.modules()}
        for module in self.model.modules():
            if id(module) not in inside:
                _replace(module, lambda like: places.unwritten(like, device))
        for name in self.rest:
            load.read(self.model, self.source, name, decode=self.decode)

    def make_buffers(self, device: torch.device) -> None:
        """Let every layer lie in the buffer of its parity."""
        most = max(map(_nbytes, self.decoder.layers), default=0)
        self.buffers = [
            torch.empty(most, dtype=torch.uint8, device=device) for _ in range(2)
        ]
        for number, layer in enumerate(self.decoder.layers):
            cut = _Cut(self.buffers[number % 2])
            for module in layer.modules():
                _replace(module, cut)

    def watch(self) -> None:
        """Have each layer wait for its weights, and the next one read meanwhile."""
        self.decoder.register_forward_pre_hook(lambda *_: self._enter())
        self.decoder.register_forward_hook(lambda *_: self._leave(), always_call=True)
        for number, layer in enumerate(self.decoder.layers):
            layer.register_forward_pre_hook(lambda *_, at=number: self._need(at))

    def _enter(self) -> None:
        self._passing.acquire()

    def _leave(self) -> None:
        """The next pass begins with the first layer: read it, whoever computes."""
        try:
            self._settle()
            self._begin(0)
        finally:
            self._passing.release()

    def _need(self, number: int) -> None:
        self._settle()
        if self._held[number % 2] != number:
            self._read(number)
        if number + 1 < len(self.names):
            self._begin(number + 1)

    def _begin(self, number: int) -> None:
        if self.names and self._held[number % 2] != number:
            self._reading = self.reader.submit(self._read, number)

    def _settle(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.result()

    def _read(self, number: int) -> None:
        self._held[number % 2] = -1
        for name in self.names[number]:
            load.read(self.model, self.source, name, decode=self.decode)
        self._held[number % 2] = number


class _Cut:
    """Cuts tensors out of a buffer, one behind the other."""

    def __init__(self, buffer: Tensor) -> None:
        self.buffer, self.at = buffer, 0

    def __call__(self, like: Tensor) -> Tensor:
        size = like.numel() * like.element_size()
        part = self.buffer[self.at : self.at + size]
        self.at += _aligned(size)
        return part.view(like.dtype).view(like.shape)


def _replace(module: nn.Module, make: Any) -> None:
    """Put other memory in place of a module's own weights."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            made = nn.Parameter(make(parameter), requires_grad=False)
            module._parameters[name] = made
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = make(buffer)


def _nbytes(layer: nn.Module) -> int:
    """Bytes that a layer's weights take in a buffer."""
    tensors = (*layer.parameters(), *layer.buffers())
    return sum(_aligned(x.numel() * x.element_size()) for x in tensors)


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
