"""Large pages under weights and code, where the system has them."""

import ctypes
from collections.abc import Iterable
from functools import cache

from torch import Tensor

from k3.kernels.native import library

CLOSE_BYTES = 65536
"""Tensors no further apart lie in one piece of memory."""


def enlarge(tensors: Iterable[Tensor]) -> None:
    """Back these with large pages: a stream of weights is then read twice as fast."""
    call = library.function("k3_large_pages", "ii")
    start = stop = 0
    for at, size in sorted((x.data_ptr(), x.nbytes) for x in tensors):
        if at > stop + CLOSE_BYTES:
            call(start, stop)
            start = at
        stop = max(stop, at + size)
    call(start, stop)


@cache
def own_code() -> bool:
    """Let the kernels' code lie in a large page of its own; returns whether it does."""
    done = ctypes.c_int64()
    library.function("k3_code_pages", "p")(ctypes.addressof(done))
    return bool(done.value)
