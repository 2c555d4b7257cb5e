"""The bytes of a checkpoint's tensors: read into place, copied, or mapped."""

import math
import mmap
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import torch
from torch import Tensor

from k3.checkpoint.survey import Stored
from k3.errors import CheckpointError

DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32, "U8": torch.uint8}


class Source:
    """Open shards of a checkpoint; a context manager."""

    def __init__(self, tensors: dict[str, Stored]) -> None:
        self.tensors = tensors
        self._open: dict[Path, BinaryIO] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "Source":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def in_order(self) -> list[str]:
        """Return the names as they lie on disk."""
        place = {n: (str(s.file), s.entry.begin) for n, s in self.tensors.items()}
        return sorted(place, key=place.__getitem__)

    def into(self, name: str, target: Tensor) -> None:
        """Read a tensor into `target`, converting and moving it where needed."""
        stored = self.tensors[name]
        dtype = DTYPES[stored.entry.dtype]
        direct = target.dtype == dtype and target.device.type == "cpu"
        if direct and target.is_contiguous():
            self._read(stored, target)
        else:
            target.copy_(self.tensor(name))

    def tensor(self, name: str) -> Tensor:
        """Return a new tensor with the stored values and dtype."""
        stored = self.tensors[name]
        value = torch.empty(stored.entry.shape, dtype=DTYPES[stored.entry.dtype])
        self._read(stored, value)
        return value

    def _read(self, stored: Stored, target: Tensor) -> None:
        stream = self._open.get(stored.file)
        if stream is None:
            # Unbuffered: bytes go from the page cache to the tensor and nowhere else.
            stream = self._stack.enter_context(stored.file.open("rb", buffering=0))
            self._open[stored.file] = stream
        stream.seek(stored.entry.begin)
        left = target.view(-1).view(torch.uint8).numpy().data
        while left:
            count = stream.readinto(left)  # type: ignore[attr-defined]
            if not count:
                raise CheckpointError(
                    f"{stored.file} became shorter while it was read; load it again"
                )
            left = left[count:]


def mapped(tensors: dict[str, Stored]) -> dict[str, Tensor]:
    """Return name -> read-only view of the file's pages, which come in when touched."""
    pages: dict[Path, mmap.mmap] = {}
    views = {}
    for name, stored in tensors.items():
        if stored.file not in pages:
            with stored.file.open("rb") as stream:
                page = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            pages[stored.file] = page
        views[name] = _view(pages[stored.file], stored)
    return views


def _view(page: mmap.mmap, stored: Stored) -> Tensor:
    entry, dtype = stored.entry, DTYPES[stored.entry.dtype]
    if not entry.nbytes:
        return torch.empty(entry.shape, dtype=dtype)
    with warnings.catch_warnings():
        # Nothing writes to these: they are held by the experts and only decoded.
        warnings.filterwarnings("ignore", message="The given buffer is not writable")
        count = math.prod(entry.shape)
        flat = torch.frombuffer(page, dtype=dtype, count=count, offset=entry.begin)
    return flat.view(entry.shape)
