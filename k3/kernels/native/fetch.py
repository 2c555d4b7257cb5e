"""Python objects that will be looked at soon, brought near all at once.

After a decode step the weights have emptied the caches, and a look at some hundred
tensors waits for memory once for each.
"""

import ctypes
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from k3.kernels.native import library

LINE = 64
TABLES = (32, 40)
"""Bytes from the start of a dict at which CPython keeps the addresses of its tables.

Only hints are made of them: nothing is read there, whatever they are elsewhere.
"""


class Objects:
    """Where dicts, what they hold, and tensors are; they are kept alive here."""

    def __init__(self, dicts: Iterable[Any], tensors: Iterable[Tensor]) -> None:
        dicts, tensors = list(dicts), list(tensors)
        held = [part for d in dicts for pair in d.items() for part in pair]
        self._alive = [*dicts, *tensors, *held]
        if sys.implementation.name != "cpython":
            dicts, tensors, self._alive = [], [], []
        near = [at for x in self._alive for at in _parts(x)]
        near += [x._cdata for x in tensors]
        hints = [at for d in dicts for at in _tables(d)]
        hints += [at for x in tensors for at in _behind(x)]
        self._near, self._hints = _lines(near), _lines(hints)

    def fetch(self) -> None:
        """Bring them near."""
        call = library.function("k3_fetch", "pipi")
        near, hints = self._near, self._hints
        call(near.data_ptr(), near.numel(), hints.data_ptr(), hints.numel())


def _lines(addresses: list[int]) -> Tensor:
    """One address in each cache line, in order."""
    found = sorted({at // LINE: at for at in addresses}.values())
    return torch.tensor(found, dtype=torch.int64)


def _parts(x: object) -> tuple[int, ...]:
    """Bytes of an object itself; a name's hash is its fourth word."""
    wide = isinstance(x, (str, dict, Tensor))
    return (id(x), id(x) + 24) if wide else (id(x),)


def _tables(held: Any) -> Iterator[int]:
    lines = min(sys.getsizeof(held) // LINE, 4)
    for place in TABLES:
        table = ctypes.c_int64.from_address(id(held) + place).value
        yield from (table + LINE * i for i in range(lines) if table)


def _behind(x: Tensor) -> Iterator[int]:
    """What Tensor.data_ptr looks at behind the tensor's own object."""
    storage = x.untyped_storage()._cdata
    yield from (x._cdata + LINE, x._cdata + 2 * LINE, storage, storage + LINE)
