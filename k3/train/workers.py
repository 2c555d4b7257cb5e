"""Threads of one core each, for models too small to split an operation."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


@contextmanager
def pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """`count` threads in which PyTorch computes on one core.

    A wide pool waits at the end of every operation, which on a busy machine takes
    longer than the operation.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(count) as threads:
            yield threads
    finally:
        torch.set_num_threads(before)
