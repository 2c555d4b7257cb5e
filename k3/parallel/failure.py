"""One rank's failure ends all of them, and is told once."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist

from k3.errors import K3Error

KEY = "k3/failed"
CODE = 1


@contextmanager
def told_once() -> Iterator[None]:
    """Let the first rank that fails say why; the others end without a word.

    When a rank leaves, the exchanges of the others fail: that is no news. What fails
    everywhere alike is said once too.
    """
    if not dist.is_initialized():
        yield
        return
    store = dist.distributed_c10d._get_default_store()
    try:
        yield
    except (Exception, KeyboardInterrupt) as fault:
        if store.add(KEY, 1) == 1:
            raise
        raise SystemExit(CODE) from (fault if isinstance(fault, K3Error) else None)
